//go:build unix

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
)

// openGate is a statement that opens the gate, so that the messages parked because of it can take effect.
const openGate = `insert into gate (open) values (1)`

// retry makes each release retry half of the rows, whichever release parked them.
func (r *run) retry(ctx context.Context) error {
	if err := r.Store.Exec(ctx, openGate); err != nil {
		return err
	}
	numbers, err := r.unmet(ctx)
	if err != nil {
		return err
	}
	s := &slot{proof: r.Proof, name: "retry"}
	for n, release := range []Release{r.First, r.Second} {
		s.release = release
		if err := s.migrate(); errors.Is(err, errNewer) {
			r.ledger.Refusals++
			s.release = r.other(release)
		}
		var own []string
		for i := n; i < len(numbers); i += 2 {
			own = append(own, numbers[i])
		}
		if err := s.retry(own); err != nil {
			return err
		}
	}
	return r.countRetried(ctx)
}

// countRetried counts the retried messages that took effect and have a marker.
func (r *run) countRetried(ctx context.Context) error {
	rows, err := r.Store.Reader().QueryContext(ctx, `select id, count(*) from effects e
		where exists (select 1 from semel_markers_readable m where m.id = e.id and m.outcome = 'applied') group by id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	times := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return err
		}
		times[id] = n
	}
	for i := range r.Feed.IDs {
		if n := times[id(i)]; n > 0 && kindOf(i) == unmet {
			r.ledger.Retried++
			r.ledger.Doubled += n - 1
		}
	}
	return rows.Err()
}

// unmet returns the numbers of the rows that were parked because of the gate.
func (r *run) unmet(ctx context.Context) (numbers []string, err error) {
	rows, err := r.Store.Reader().QueryContext(ctx, `select number from semel_inbox where reason = 'condition unmet' order by number`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		numbers = append(numbers, strconv.FormatInt(n, 10))
	}
	return numbers, rows.Err()
}

// retry retries rows with the slot's release. An exit code of 1 means that some rows were not retried; the
// ledger finds this in the store.
func (s *slot) retry(numbers []string) error {
	if len(numbers) == 0 {
		return nil
	}
	noun := "messages"
	if s.release.Name == Pinned[:7] { // this release has another name for the command
		noun = "parked"
	}
	args := []string{noun, "retry", "--because", "the account is open", "--run"}
	said, err := s.call(append(args, numbers...)...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("semel %s retry of %s: %w\n%s", noun, s.release.Name, err, said)
	}
	return nil
}
