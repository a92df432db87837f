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
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Failures counts the chosen rows by failure group and state, largest group first. The rows of a failure
// group have the same consumer, the same reason, and last errors of the same class.
func (b Box) Failures(ctx context.Context, f store.RowFilter) ([]Group, error) {
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
		k := key{r.Key.Consumer, r.State, r.Reason, ErrorClass(r.LastError)}
		if groups[k] == nil && len(groups) >= mostGroups {
			k.err = furtherErrors
		}
		g := groups[k]
		if g == nil {
			g = &Group{Store: b.Store, Consumer: k.consumer, State: admin.StateOf(k.state), Reason: k.reason, Error: strings.Clone(k.err), First: r.ReceivedAt, Last: r.ReceivedAt}
			groups[k] = g
		}
		g.add(r.ReceivedAt)
	}
	all := []Group{}
	for _, g := range groups {
		if g.Error != furtherErrors {
			g.ID = failureID(g.Consumer, g.Reason, g.Error)
		}
		all = append(all, *g)
	}
	SortGroups(all)
	return all, nil
}

// Failure returns the name of the row's failure group.
func Failure(r store.StoredRow) string {
	return failureID(r.Key.Consumer, r.Reason, ErrorClass(r.LastError))
}

// failureDigits is the number of digits in a failure group's name.
const failureDigits = 8

// failureID returns a name that is short enough to type and equal in every process.
func failureID(consumer string, reason semel.Reason, class string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{consumer, string(reason), class}, "\x00")))
	return hex.EncodeToString(sum[:])[:failureDigits]
}

// differs matches the variable parts of errors: quoted texts, and words with a digit such as amounts, ids,
// addresses and times. Databases also quote the names of constraints and columns, but these names identify
// the fault, so schema matches them separately.
var (
	schema  = regexp.MustCompile(`\b(?:constraint|column) "[^"]*"`)
	differs = regexp.MustCompile(schema.String() + `|"[^"]*"|'[^']*'|` + "`[^`]*`|" + `[^\s,;:()\[\]]*\d[^\s,;:()\[\]]*`)
)

// classWords is the number of words that identify the class of an error.
const classWords = 12

// ErrorClass returns the class of an error: the first words, without variable parts such as ids and amounts.
// The class of an error contains the names of constraints and columns.
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

// TopicFailure returns the name of the failure group of a dead letter in a topic, or "" for a foreign
// record.
func TopicFailure(l TopicLetter) string {
	if l.Stands == StandsForeign {
		return ""
	}
	return failureID(l.Consumer, l.Reason, ErrorClass(l.Error))
}

// Group is a set of rows with the same consumer, state and reason, and with errors of the same class.
type Group struct {
	// ID is the name of the failure group. ID is empty for the group that collects all errors beyond the
	// limit.
	ID       string       `json:"group,omitempty"`
	Store    string       `json:"store"`
	Consumer string       `json:"consumer"`
	State    admin.State  `json:"state"`
	Reason   semel.Reason `json:"reason"`
	Error    string       `json:"last_error"`
	Count    int          `json:"count"`
	// First and Last are the receive times of the oldest and the newest row.
	First time.Time `json:"first_received_at"`
	Last  time.Time `json:"last_received_at"`
}

// mostGroups is the maximum number of groups. The limit bounds memory if every error is different.
const mostGroups = 10_000

// furtherErrors is the class of all errors beyond mostGroups.
const furtherErrors = "(further errors)"

func (g *Group) add(received time.Time) {
	g.Count++
	if received.Before(g.First) {
		g.First = received
	}
	if received.After(g.Last) {
		g.Last = received
	}
}

// SortGroups sorts by size, largest first.
func SortGroups(all []Group) {
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Store, b.Store), cmp.Compare(a.Consumer, b.Consumer),
			cmp.Compare(a.State, b.State), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Error, b.Error))
	})
}
