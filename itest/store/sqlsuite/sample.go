package sqlsuite

import "context"

// Sampled asks again while there is no answer: a sample has 50 ms, which a busy machine may
// take for anything.
func Sampled[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	for range 100 {
		if answer, err = ask(ctx); err == nil {
			break
		}
	}
	return answer, err
}
