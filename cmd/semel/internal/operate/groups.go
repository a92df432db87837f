package operate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Group are rows that were set aside for one reason with one error.
type Group struct {
	// ID is what a failure group is named by; empty of other groups.
	ID       string         `json:"group,omitempty"`
	Store    string         `json:"store"`
	Consumer string         `json:"consumer"`
	State    store.RowState `json:"state"`
	Reason   semel.Reason   `json:"reason"`
	Error    string         `json:"last_error"`
	Count    int            `json:"count"`
	// First and Last are when the oldest and the newest of them were received.
	First time.Time `json:"first_received_at"`
	Last  time.Time `json:"last_received_at"`
}

// mostGroups bounds what is held in memory where each error is another.
const mostGroups = 10_000

// furtherErrors stands for the errors that are not told apart.
const furtherErrors = "(further errors)"

// Groups counts the rows that the filter chooses by consumer, state, reason and
// last error, the most first.
func (b Box) Groups(ctx context.Context, f store.RowFilter) ([]Group, error) {
	return b.groups(ctx, f, func(text string) string { return text })
}

// groups counts rows by what class makes of their last errors.
func (b Box) groups(ctx context.Context, f store.RowFilter, class func(string) string) ([]Group, error) {
	type key struct {
		consumer string
		state    store.RowState
		reason   semel.Reason
		err      string
	}
	groups := map[key]*Group{}
	for r, err := range b.Rows(ctx, f) {
		if err != nil {
			return nil, err
		}
		k := key{r.Key.Consumer, r.State, r.Reason, class(r.LastError)}
		if groups[k] == nil && len(groups) >= mostGroups {
			k.err = furtherErrors
		}
		g := groups[k]
		if g == nil {
			g = &Group{Store: b.Store, Consumer: k.consumer, State: k.state, Reason: k.reason, Error: strings.Clone(k.err), First: r.ReceivedAt, Last: r.ReceivedAt}
			groups[k] = g
		}
		g.add(r.ReceivedAt)
	}
	all := []Group{}
	for _, g := range groups {
		all = append(all, *g)
	}
	SortGroups(all)
	return all, nil
}

func (g *Group) add(received time.Time) {
	g.Count++
	if received.Before(g.First) {
		g.First = received
	}
	if received.After(g.Last) {
		g.Last = received
	}
}

// SortGroups puts the largest first.
func SortGroups(all []Group) {
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Store, b.Store), cmp.Compare(a.Consumer, b.Consumer),
			cmp.Compare(a.State, b.State), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Error, b.Error))
	})
}
