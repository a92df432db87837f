//go:build unix

package alerts

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// panel is the part of a dashboard panel that this fault test needs.
type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// inPlace replaces the dashboard's variables in a query, as Grafana does.
var inPlace = strings.NewReplacer("$consumer", ".*", "$__rate_interval", "30s")

// ask runs the queries of all dashboard panels in Prometheus, over the time of the whole run. ask records
// queries that return no data.
func (r *run) ask(ctx context.Context, began time.Time) {
	root := proof.Must(root(ctx))
	text := proof.Must(os.ReadFile(filepath.Join(root, "deploy", "dashboard.json")))
	var board struct {
		Panels []panel `json:"panels"`
	}
	proof.Check(json.Unmarshal(text, &board))
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			said := proof.Must(r.prometheus.Range(inPlace.Replace(q.Expr), began, time.Now(), 5*time.Second))
			if r.ledger.Queries++; len(said) == 0 {
				r.ledger.Empty = append(r.ledger.Empty, p.Title+": "+q.Expr)
			}
		}
	}
	r.Say("the dashboard has %d queries; %d had no data", r.ledger.Queries, len(r.ledger.Empty))
}
