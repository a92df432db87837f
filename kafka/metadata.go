package kafka

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The metadata of an offset that is committed are words. startMark says for how many
// partitions Start was, so that a consumer with another store, which knows nothing
// of the first join, begins the others at their beginning. keptMark says that the
// store had the offset before the group, and of which topic, by its id.
const (
	startMark = "semel-start/"
	keptMark  = "semel-position/"
)

// markedStarts is for how many partitions Start was; 0 where nothing says so.
func markedStarts(metadata string) int {
	for word := range strings.FieldsSeq(metadata) {
		if digits, found := strings.CutPrefix(word, startMark); found {
			n, _ := strconv.ParseInt(digits, 10, 32)
			return int(n)
		}
	}
	return 0
}

// markedKept reports whether the store had an offset of this topic before the group.
func markedKept(metadata string, id [16]byte) bool {
	for word := range strings.FieldsSeq(metadata) {
		if word == keptWord(id) {
			return true
		}
	}
	return false
}

func keptWord(id [16]byte) string { return fmt.Sprintf("%s%x", keptMark, id) }

// metadata are those of an offset of a topic.
func (c *commits) metadata(topic string, id [16]byte) *string {
	words := c.startWords(topic)
	if c.positions.store != nil {
		words = append(words, keptWord(id))
	}
	if len(words) == 0 {
		return nil
	}
	return kmsg.StringPtr(strings.Join(words, " "))
}
