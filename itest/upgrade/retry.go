//go:build unix

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/semel-go/semel/itest/proof"
)

// A statement that inserts a row into the table gate, so that messages parked for lack of this row can take effect.
const openGate = `insert into gate (open) values (1)`

// retry lets each release retry every second row, independently of the release that parked the row, and counts the
// retried messages that took effect and have a marker.
func (r *run) retry(ctx context.Context) {
	proof.Check(r.Store.Exec(ctx, openGate))
	var numbers []string // numbers of the rows whose condition was not met
	number := ""
	r.forEachRow(ctx, `select number from semel_inbox where reason = 'condition unmet' order by number`, []any{&number}, func() { numbers = append(numbers, number) })
	s := &slot{proof: r.Proof, name: "retry"}
	for n, release := range []Release{r.First, r.Second} {
		s.release = release
		if err := s.migrate(); errors.Is(err, errNewer) {
			r.ledger.Refusals++
			s.release = r.otherRelease(release)
		}
		var own []string
		for i := n; i < len(numbers); i += 2 {
			own = append(own, numbers[i])
		}
		proof.Check(s.retry(own))
	}
	times, name, n := map[string]int{}, "", 0
	r.forEachRow(ctx, `select id, count(*) from effects e
		where exists (select 1 from semel_markers_readable m where m.id = e.id and m.outcome = 'applied') group by id`, []any{&name, &n}, func() { times[name] = n })
	for i := range r.Feed.IDs {
		if n := times[id(i)]; n > 0 && kindOf(i) == unmet {
			r.ledger.Retried++
			r.ledger.Doubled += n - 1
		}
	}
}

// retry runs the command that retries the given rows, with the version of Semel that the slot uses. An exit code of 1
// means that some rows were not retried; the ledger finds these rows in the store.
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
