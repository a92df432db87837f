//go:build unix

package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// panel is the part of a dashboard panel that the proof needs.
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
func (r *run) ask(ctx context.Context, began time.Time) error {
	root, err := root(ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "dashboard.json"))
	if err != nil {
		return err
	}
	var board struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return fmt.Errorf("deploy/dashboard.json: %w", err)
	}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			said, err := r.prometheus.Range(inPlace.Replace(q.Expr), began, time.Now(), 5*time.Second)
			if err != nil {
				return fmt.Errorf("the panel %q: %w", p.Title, err)
			}
			if r.ledger.Queries++; len(said) == 0 {
				r.ledger.Empty = append(r.ledger.Empty, p.Title+": "+q.Expr)
			}
		}
	}
	r.Say("the dashboard has %d queries; %d had no data", r.ledger.Queries, len(r.ledger.Empty))
	return nil
}
