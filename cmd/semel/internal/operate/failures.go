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

// Failures counts the chosen rows by failure group and state, largest first. A failure group is the
// set of rows of one consumer and reason whose last errors have the same class.
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

// failureDigits is the length of a failure group's name.
const failureDigits = 8

// failureID returns a name that is short enough to type and the same in every process.
func failureID(consumer string, reason semel.Reason, class string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{consumer, string(reason), class}, "\x00")))
	return hex.EncodeToString(sum[:])[:failureDigits]
}

// differs matches the parts in which errors of one class differ: quoted texts and words with a digit,
// such as amounts, ids, addresses and times. Names of constraints and columns do not match although
// databases quote them, because they identify the fault.
var (
	schema  = regexp.MustCompile(`\b(?:constraint|column) "[^"]*"`)
	differs = regexp.MustCompile(schema.String() + `|"[^"]*"|'[^']*'|` + "`[^`]*`|" + `[^\s,;:()\[\]]*\d[^\s,;:()\[\]]*`)
)

// classWords is how many words of an error make its class.
const classWords = 12

// ErrorClass returns the class of an error: its first words without the parts that match differs.
// Quoted names of constraints and columns stay.
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

// TopicFailure returns the name of the failure group of a dead letter in a topic. TopicFailure is
// empty for foreign records.
func TopicFailure(l TopicLetter) string {
	if l.Stands == StandsForeign {
		return ""
	}
	return failureID(l.Consumer, l.Reason, ErrorClass(l.Error))
}

// Group is a set of rows of one consumer, state and reason with errors of one class.
type Group struct {
	// ID is the name of the failure group; empty for the group of further errors.
	ID       string       `json:"group,omitempty"`
	Store    string       `json:"store"`
	Consumer string       `json:"consumer"`
	State    admin.State  `json:"state"`
	Reason   semel.Reason `json:"reason"`
	Error    string       `json:"last_error"`
	Count    int          `json:"count"`
	// First and Last are when the oldest and the newest row were received.
	First time.Time `json:"first_received_at"`
	Last  time.Time `json:"last_received_at"`
}

// mostGroups limits the memory used if every error is different.
const mostGroups = 10_000

// furtherErrors is the group of all errors beyond mostGroups.
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
