package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/semel-go/semel"
)

const handMark = `insert into hand_markers (scope, at, outcome, version, id, sum)
select 1, clock_timestamp(), 1, 1, id, sum from unnest($1::bytea[], $2::bytea[]) a (id, sum) order by id
on conflict (scope, id) do nothing returning id`

// handMarks returns the sorted ids of a batch and the hashes of the bodies.
func handMarks(batch []*semel.Message) (ids, sums [][]byte) {
	sorted := slices.Clone(batch)
	slices.SortFunc(sorted, func(a, b *semel.Message) int { return bytes.Compare(handID(a), handID(b)) })
	for _, m := range sorted {
		sum := sha256.Sum256(m.Body)
		ids, sums = append(ids, handID(m)), append(sums, sum[:16])
	}
	return ids, sums
}

// handID returns the 16 bytes of the message's UUID. If the id is no UUID, handID returns the text of the id.
func handID(m *semel.Message) []byte {
	id := m.Headers[0].Value
	if len(id) == 36 {
		if b, err := hex.DecodeString(strings.ReplaceAll(string(id), "-", "")); err == nil {
			return b
		}
	}
	return id
}
