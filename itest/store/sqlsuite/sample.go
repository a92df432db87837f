package sqlsuite

import "context"

// Sampled repeats a request until the request is answered. A sample has a time limit of 50 ms, which a busy machine may
// exceed.
func Sampled[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	for range 100 {
		if answer, err = ask(ctx); err == nil {
			break
		}
	}
	return answer, err
}
