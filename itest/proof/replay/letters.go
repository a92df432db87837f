//go:build unix

package replay

import "context"

func (r *run) repair(ctx context.Context) error { return r.interim(ctx) }

func (r *run) repairLive(ctx context.Context) error {
	return nil
}

func (r *run) interim(ctx context.Context) error {
	for _, text := range mends {
		if _, err := r.Activity.DB.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	said, err := r.semel(ctx, "parked", "retry", "--state", "DEAD_LETTERED", "--all", "--with-reason", "permanent failure", "--reason", "mended", "--as", "proof", "--wait")
	r.Say("%.600s", said)
	return err
}
