package operate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// libraryErrors lists errors of the library. The text of each error starts with the library's name.
var libraryErrors = []error{
	semel.ErrChanged, semel.ErrConflict, semel.ErrState, semel.ErrHalted, semel.ErrUnfinished, semel.ErrOld, semel.ErrBehind, semel.ErrSchema,
	semel.ErrUnsupported, semel.ErrIdentityChanged, semel.ErrForeignOwner, semel.ErrClosed, store.ErrClaimLost,
}

// prefix is the library's name at the start of an error text.
const prefix = "semel: "

// errorText returns the text of an error without the library's name. In the middle of a printed
// line, the library's name would not help the reader.
func errorText(err error) string { return trimLibraryName(err.Error()) }

// plainOf returns the same text as errorText, without the row number that the printed line already shows.
func plainOf(row int64, err error) string {
	return strings.TrimPrefix(errorText(err), fmt.Sprintf("row %d: ", row))
}

func trimLibraryName(text string) string {
	for _, inner := range libraryErrors {
		text = strings.ReplaceAll(text, inner.Error(), strings.TrimPrefix(inner.Error(), prefix))
	}
	return text
}

// WithoutReason returns the text of an error without the reason with which the text may begin, for output
// that also shows the reason in another place.
func WithoutReason(reason semel.Reason, text string) string {
	if rest, begins := strings.CutPrefix(text, string(reason)); begins && reason != "" {
		if said, more := strings.CutPrefix(rest, ": "); more || rest == "" {
			return said
		}
	}
	return text
}

// rowNumber matches the word row, followed by a number.
var rowNumber = regexp.MustCompile(`\brow \d+\b`)

// Plain formats a line of an error for printing. Plain removes the library's name, which is printed before the line,
// and the second occurrence of the name of a consumer, store or source. If the error is not about a row, Plain also
// removes the text about a row's state.
func Plain(line string) string {
	line = strings.TrimPrefix(line, prefix)
	line = withoutRepeatedName(line)
	line = trimLibraryName(line)
	if state := ": " + strings.TrimPrefix(semel.ErrState.Error(), prefix); !rowNumber.MatchString(line) {
		line = strings.ReplaceAll(line, state, "")
	}
	return line
}

// subject matches the name of a consumer, store or source at the start of an error's text.
var subject = regexp.MustCompile(`^(consumer|store|source) ([^ ]+): `)

// withoutRepeatedName removes the name of a consumer, store or source if the text behind it begins with the same name.
// An error text has the same name twice if a function and its caller have both added the name.
func withoutRepeatedName(line string) string {
	found := subject.FindStringSubmatch(line)
	if found == nil {
		return line
	}
	rest := strings.TrimPrefix(line[len(found[0]):], prefix)
	for _, name := range []string{found[2], strconv.Quote(found[2])} {
		if again, named := strings.CutPrefix(rest, found[1]+" "+name); named && (again == "" || again[0] == ':' || again[0] == ' ') {
			return withoutRepeatedName(rest)
		}
	}
	return found[0] + withoutRepeatedName(rest)
}

// WithoutConsumer returns an error text without the name of its consumer, for output that also shows the name
// in another place.
func WithoutConsumer(name, text string) string {
	for _, who := range []string{name, strconv.Quote(name)} {
		text = strings.ReplaceAll(text, "consumer "+who+": "+prefix, "")
		text = strings.ReplaceAll(text, prefix+"consumer "+who+": ", "")
		text = strings.ReplaceAll(text, "consumer "+who+": ", "")
	}
	return text
}
