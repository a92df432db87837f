package operate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// named are the library's errors whose texts begin with the library's name.
var named = []error{
	semel.ErrChanged, semel.ErrConflict, semel.ErrState, semel.ErrHalted, semel.ErrUnfinished, semel.ErrOld, semel.ErrBehind, semel.ErrSchema,
	semel.ErrUnsupported, semel.ErrIdentityChanged, semel.ErrForeignOwner, semel.ErrClosed, store.ErrClaimLost,
}

// prefix is the library's name at the beginning of such a text.
const prefix = "semel: "

// plain returns the text of an error without the library's name, which is useless in the middle of a
// line.
func plain(err error) string { return unnamed(err.Error()) }

// plainOf is plain for an error about a row whose number the line already shows.
func plainOf(row int64, err error) string {
	return strings.TrimPrefix(plain(err), fmt.Sprintf("row %d: ", row))
}

func unnamed(text string) string {
	for _, inner := range named {
		text = strings.ReplaceAll(text, inner.Error(), strings.TrimPrefix(inner.Error(), prefix))
	}
	return text
}

// ofARow matches a text about a row.
var ofARow = regexp.MustCompile(`\brow \d+\b`)

// Plain formats a line of an error for printing. Plain removes the library's name, which is printed
// before the line, a repeated name of the consumer, and, from an error that is not about a row, the
// text about a row's state.
func Plain(line string) string {
	line = strings.TrimPrefix(line, prefix)
	line = onceNamed(line)
	line = unnamed(line)
	if state := ": " + strings.TrimPrefix(semel.ErrState.Error(), prefix); !ofARow.MatchString(line) {
		line = strings.ReplaceAll(line, state, "")
	}
	return line
}

// onceNamed removes the name of the consumer if the error itself contains the name.
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
