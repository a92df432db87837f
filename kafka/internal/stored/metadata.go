package stored

import (
	"fmt"
	"strconv"
	"strings"
)

// The metadata of a committed offset consists of words. A word with startMark has the number of partitions to which
// Start applied. A consumer with another store does not know about the first join; because of this word, a consumer
// with another store reads all other partitions from their beginning. A word with keptMark means: for the topic with
// this id, the store had the offset before the group had it.
const (
	startMark = "semel-start/"
	keptMark  = "semel-position/"
)

// MarkedStarts returns the number of partitions to which Start applied; 0 if the metadata has no word with startMark.
func MarkedStarts(metadata string) int {
	for word := range strings.FieldsSeq(metadata) {
		if digits, found := strings.CutPrefix(word, startMark); found {
			n, _ := strconv.ParseInt(digits, 10, 32)
			return int(n)
		}
	}
	return 0
}

// MarkedKept reports whether the metadata says that the store had an offset of this topic before the group had
// it.
func MarkedKept(metadata string, id [16]byte) bool {
	for word := range strings.FieldsSeq(metadata) {
		if word == KeptWord(id) {
			return true
		}
	}
	return false
}

// KeptWord returns the word that MarkedKept looks for.
func KeptWord(id [16]byte) string { return fmt.Sprintf("%s%x", keptMark, id) }

// StartWord returns the word that MarkedStarts looks for.
func StartWord(partitions int) string { return startMark + strconv.Itoa(partitions) }
