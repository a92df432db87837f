package operate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

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
