package operate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Failures counts the rows that the filter chooses by failure group and state, the most first.
// A failure group are those of one consumer and reason whose last errors are of one class.
func (b Box) Failures(ctx context.Context, f store.RowFilter) ([]Group, error) {
	all, err := b.groups(ctx, f, ErrorClass)
	for i, g := range all {
		if g.Error != furtherErrors {
			all[i].ID = failureID(g.Consumer, g.Reason, g.Error)
		}
	}
	return all, err
}

// Failure is the name of the failure group of a row.
func Failure(r store.StoredRow) string {
	return failureID(r.Key.Consumer, r.Reason, ErrorClass(r.LastError))
}

// failureDigits is how long the name of a failure group is.
const failureDigits = 8

// failureID is short enough to be typed, and the same in every process.
func failureID(consumer string, reason semel.Reason, class string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{consumer, string(reason), class}, "\x00")))
	return hex.EncodeToString(sum[:])[:failureDigits]
}

// What errors of one class differ in: what is quoted, and words with a digit, such as
// amounts, ids, addresses and times. The names of constraints and columns are no such thing,
// though databases quote them: they say what is wrong.
var (
	schema  = regexp.MustCompile(`\b(?:constraint|column) "[^"]*"`)
	differs = regexp.MustCompile(schema.String() + `|"[^"]*"|'[^']*'|` + "`[^`]*`|" + `[^\s,;:()\[\]]*\d[^\s,;:()\[\]]*`)
)

// classWords is how many words of an error make its class.
const classWords = 12

// ErrorClass is what errors of one cause have in common: the first words, without what is
// quoted, if it is not the name of a constraint or a column, and what has digits.
func ErrorClass(text string) string {
	text = differs.ReplaceAllStringFunc(text, func(part string) string {
		if schema.MatchString(part) {
			return part
		}
		return "…"
	})
	words := strings.Fields(text)
	if len(words) > classWords {
		words = append(words[:classWords:classWords], "…")
	}
	return strings.Join(words, " ")
}

// TopicFailure is the name of the failure group of a topic's letter; empty of what is foreign.
func TopicFailure(l TopicLetter) string {
	if l.Stands == StandsForeign {
		return ""
	}
	return failureID(l.Consumer, l.Reason, ErrorClass(l.Error))
}

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
