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

// panel is what a proof needs of one of the dashboard's.
type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// inPlace of what Grafana puts into a query.
var inPlace = strings.NewReplacer("$consumer", ".*", "$__rate_interval", "30s")

// ask has Prometheus answer each query of the dashboard over the whole run, and notes those
// of which it has no figures.
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
	r.Say("%d queries of the dashboard, of which %d had no answer", r.ledger.Queries, len(r.ledger.Empty))
	return nil
}
