package operate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// named are errors of the library. The text of each starts with the library's name.
var named = []error{
	semel.ErrChanged, semel.ErrConflict, semel.ErrState, semel.ErrHalted, semel.ErrUnfinished, semel.ErrOld, semel.ErrBehind, semel.ErrSchema,
	semel.ErrUnsupported, semel.ErrIdentityChanged, semel.ErrForeignOwner, semel.ErrClosed, store.ErrClaimLost,
}

// prefix is the library's name at the start of an error text.
const prefix = "semel: "

// plain returns the text of an error without the library's name. In the middle of a line the name is of no
// use.
func plain(err error) string { return unnamed(err.Error()) }

// plainOf returns the same as plain, without the row number that the printed line already shows.
func plainOf(row int64, err error) string {
	return strings.TrimPrefix(plain(err), fmt.Sprintf("row %d: ", row))
}

func unnamed(text string) string {
	for _, inner := range named {
		text = strings.ReplaceAll(text, inner.Error(), strings.TrimPrefix(inner.Error(), prefix))
	}
	return text
}

// ofARow matches "row" and a number.
var ofARow = regexp.MustCompile(`\brow \d+\b`)

// Plain formats a line of an error for printing. Plain removes the library's name and a repeated name of the
// consumer. If the error is not about a row, Plain also removes the general text about the state of a row.
func Plain(line string) string {
	line = strings.TrimPrefix(line, prefix)
	line = onceNamed(line)
	line = unnamed(line)
	if state := ": " + strings.TrimPrefix(semel.ErrState.Error(), prefix); !ofARow.MatchString(line) {
		line = strings.ReplaceAll(line, state, "")
	}
	return line
}

// onceNamed removes the consumer's name from the start of a line if the error repeats the name.
func onceNamed(line string) string {
	who, rest, ok := strings.Cut(line, ": "+prefix)
	name, ofConsumer := strings.CutPrefix(who, "consumer ")
	switch {
	case !ok || !ofConsumer || strings.Contains(name, ": "):
		return line
	case strings.HasPrefix(rest, "consumer "+name) || strings.HasPrefix(rest, "consumer "+strconv.Quote(name)):
		return rest
	}
	return who + ": " + rest
}
