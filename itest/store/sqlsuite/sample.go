package sqlsuite

import "context"

// Sampled repeats a request until it is answered: a sample has 50 ms, and a busy machine can be slower.
func Sampled[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	for range 100 {
		if answer, err = ask(ctx); err == nil {
			break
		}
	}
	return answer, err
}
