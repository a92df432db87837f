package postgresfaults

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// order contains the database and the driver that a child process uses.
type order struct{ DSN, Driver string }

func TestMain(m *testing.M) { children.Main(m, runChild) }

// The handler timeout in these tests. The server ends a transaction that has been idle for frozenTimeout plus ten
// seconds.
const frozenTimeout = time.Second

// runChild runs a consumer whose handler writes its effect, reports that the effect is written, and never
// returns.
func runChild(o order) error {
	inlet := workload.NewInlet()
	inlet.Put(message("held", `{}`))
	c := workload.Config(inlet)
	c.Timeout = frozenTimeout
	for _, driver := range workload.Drivers() {
		if driver.Name != o.Driver {
			continue
		}
		consumer, closePool, err := driver.Open(workload.Options{DSN: o.DSN, Connections: 2, Config: c, Handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
			if err := workload.Effect("frozen")(ctx, exec, m); err != nil {
				return err
			}
			fmt.Println("open")
			select {}
		}})
		if err != nil {
			return err
		}
		defer closePool()
		return consumer.Run(context.Background())
	}
	return fmt.Errorf("no driver %q", o.Driver)
}

// freeze starts a child process, and stops the process with SIGSTOP while its transaction is open.
func freeze(t *testing.T, dsn, driver string) {
	t.Helper()
	c := children.Command(context.WithoutCancel(t.Context()), t, order{dsn, driver})
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the child says %q: %v", line, err)
	}
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func TestAnOwnerThatIsFrozenInItsTransaction(t *testing.T) {
	t.Run("law_11_the_server_ends_its_transaction_and_its_heir_applies_the_message", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t))
			freeze(t, dsn, driver.Name)
			heir := begin(t, settings{driver: driver, dsn: dsn, change: func(c *consumer.Config) {
				oneWorker(c)
				c.Timeout, c.MaxInMemoryWait, c.Retry.MaxDelay = frozenTimeout, 500*time.Millisecond, 500*time.Millisecond
			}})
			neighbours := makeIDs("neighbour", 10)
			heir.deliver(append([]string{"held"}, neighbours...)...)
			heir.waitApplied(neighbours...)
			heir.expectUnacked("held")
			heir.waitApplied("held")
			if got := queryOne[string](t, heir.db, `select worker from effects where id = 'held'`); got != "here" {
				t.Errorf("the effect is of %q", got)
			}
		})
	})
}
