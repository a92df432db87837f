package cli

import (
	"regexp"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/legible"
)

// spans are the places in texts of the library in which a time stands that a policy writes
// in another way: the words before it, with what takes their place, and the time.
var spans = []struct {
	at   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`\bRetention\.Keep is ([0-9.hmsµn]+), and`), "its retention is %, and"},
	{regexp.MustCompile(`\ba copy can come ([0-9.hmsµn]+) late\b`), "a copy can come % late"},
	{regexp.MustCompile(`\bkeeps markers for ([0-9.hmsµn]+) only\b`), "keeps markers for % only"},
}

// message returns a line of an error in the words of a policy.
func message(line string) string {
	line = operate.Plain(line)
	for _, s := range spans {
		line = s.at.ReplaceAllStringFunc(line, func(found string) string {
			d, err := time.ParseDuration(s.at.FindStringSubmatch(found)[1])
			if err != nil {
				return found
			}
			return strings.Replace(s.says, "%", legible.Span(d), 1)
		})
	}
	return line
}
