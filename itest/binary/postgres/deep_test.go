//go:build unix

package postgres

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/itest/services"
)

func TestADeepCheckThatIsInterruptedSaysWhereToGoOn(t *testing.T) {
	s := newCheckFixture(t, services.Postgres(t))
	s.execute(t, "update semel_markers set outcome = 2 where outcome = 1")
	conn, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	// `semel check` first queries the store, then the broker, and then the rows of the store. The test locks the
	// markers when the broker is queried.
	var once sync.Once
	s.cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (_ kmsg.Response, err error, _ bool) {
		once.Do(func() {
			_, err = conn.Exec(context.WithoutCancel(t.Context()), "begin; lock table semel_markers in access exclusive mode")
		})
		return nil, err, false
	})
	cmd, log := s.startCommand(t, "check", "--config", "semel.yaml", "--deep", "--from", "1")
	s.waitTrue(t, "select exists (select from pg_locks where relation = 'semel_markers'::regclass and not granted and database = (select oid from pg_database where datname = current_database()))")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v: %s", err, log)
	}
	const goesOn = "semel check --deep --consumer billing --from 1 --config semel.yaml"
	t.Run("K3_it_prints_the_command_that_goes_on", func(t *testing.T) {
		if !strings.Contains(log.String(), "billing: rows after 1 were not checked, because the check was interrupted; continue with "+goesOn+"\n") || !strings.Contains(log.String(), "semel: interrupted") {
			t.Error(log)
		}
	})
	if _, err := conn.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	t.Run("K3_law_12_which_finds_what_is_there", func(t *testing.T) {
		if r := s.semel(t, strings.Fields(goesOn)[1:]...); r.code != 4 || !strings.Contains(r.out, "records of the same commits contradict 1 row, although no commit of Semel writes contradictions: row 3 is applied") && !strings.Contains(r.out, "row 2 is applied") {
			t.Errorf("%+v", r)
		}
	})
}
