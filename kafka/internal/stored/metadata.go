package stored

import (
	"fmt"
	"strconv"
	"strings"
)

// The metadata of an offset that is committed are words. startMark says for how many
// partitions Start was, so that a consumer with another store, which knows nothing
// of the first join, begins the others at their beginning. keptMark says that the
// store had the offset before the group, and of which topic, by its id.
const (
	startMark = "semel-start/"
	keptMark  = "semel-position/"
)

// MarkedStarts is for how many partitions Start was; 0 where nothing says so.
func MarkedStarts(metadata string) int {
	for word := range strings.FieldsSeq(metadata) {
		if digits, found := strings.CutPrefix(word, startMark); found {
			n, _ := strconv.ParseInt(digits, 10, 32)
			return int(n)
		}
	}
	return 0
}

// MarkedKept reports whether the store had an offset of this topic before the group.
func MarkedKept(metadata string, id [16]byte) bool {
	for word := range strings.FieldsSeq(metadata) {
		if word == KeptWord(id) {
			return true
		}
	}
	return false
}

// KeptWord says that the store had an offset of this topic before the group.
func KeptWord(id [16]byte) string { return fmt.Sprintf("%s%x", keptMark, id) }

// StartWord says for how many partitions Start was.
func StartWord(partitions int) string { return startMark + strconv.Itoa(partitions) }
