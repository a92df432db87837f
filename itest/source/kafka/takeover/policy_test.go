//go:build unix

package takeover

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// A policy that takes over a topic from the group named in the environment variable FORMER.
const mover = `version: 1
stores:
  shop:
    postgres: {url: "${DATABASE_URL}"}
    migrate: true
sources:
  orders:
    kafka:
      brokers: "${KAFKA_BROKERS}"
      topics: ["${TOPIC}"]
      group: "${GROUP}"
      start: {group: "${FORMER}"}
consumers:
  billing:
    from: orders
    store: shop
    strategy: marker
    identity: {id: "header:id"}
    handler:
      sql:
        params: {id: "header:id"}
        statements: ["insert into effects (id, worker) values (:id, 'policy')"]
`

// semel runs the binary with the policy and returns its output.
func (w *world) semel(binary, folder, former string, args ...string) []byte {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), binary, append(args, "--config", "semel.yaml", "-o", "json")...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "DATABASE_URL="+w.order.DSN, "KAFKA_BROKERS="+strings.Join(w.order.Brokers, ","),
		"TOPIC="+w.order.Topic, "GROUP="+w.order.Group, "FORMER="+former)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("semel %v: %v: %s", args, err, complaints.String())
	}
	w.t.Logf("semel %v: %s", args, complaints.String())
	return out
}

func TestATopicIsTakenOverWithAPolicy(t *testing.T) {
	t.Run("I0_semel_run_begins_at_another_groups_offsets_with_seeded_markers", func(t *testing.T) {
		w, folder, old := newWorld(t), t.TempDir(), topics.Name()
		binary, err := processes.Build(t.Context(), folder)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "semel.yaml"), []byte(mover), 0o600)
		}
		must.OK(t, err)
		w.commit(old, formerly)
		// The previous consumer had applied messages whose offsets it had not committed.
		services.Exec(t, w.order.DSN, `create table processed (message_id text primary key)`,
			`insert into processed select 'h' || n from generate_series(0, 14) n`)
		w.semel(binary, folder, old, "migrate", "seed", "billing", "--from", "processed", "--id", "message_id")
		var sum struct{ Consumers map[string]semel.Counts }
		must.OK(t, json.Unmarshal(w.semel(binary, folder, old, "run", "--exit-when-idle", "2s"), &sum))
		var want []string
		for _, id := range unreadIDs() {
			if !slices.Contains(makeIDs(0, 15), id) {
				want = append(want, id)
			}
		}
		c := sum.Consumers["billing"]
		if int(c.Applied) != len(want) || int(c.Deliveries) != len(unreadIDs()) || c.Applied+c.Duplicates != c.Deliveries {
			t.Errorf("%+v", c)
		}
		w.expectEffects(want...)
	})
}
