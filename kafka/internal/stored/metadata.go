package stored

import (
	"fmt"
	"strconv"
	"strings"
)

// The metadata of a committed offset consists of words. startMark contains the number of partitions to which Start
// applied, so that a consumer with another store, which has no record of the first join, begins other partitions at
// their beginning. keptMark means that the store had the offset before the group, for the topic with this id.
const (
	startMark = "semel-start/"
	keptMark  = "semel-position/"
)

// MarkedStarts returns the number of partitions to which Start applied; 0 if the metadata does not contain it.
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

// KeptWord returns the word for an offset of this topic that the store had before the group.
func KeptWord(id [16]byte) string { return fmt.Sprintf("%s%x", keptMark, id) }

// StartWord returns the word for the number of partitions to which Start applied.
func StartWord(partitions int) string { return startMark + strconv.Itoa(partitions) }
