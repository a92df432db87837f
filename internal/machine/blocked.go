package machine

import (
	"slices"

	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// standBehind stores a message in the inbox because an earlier message of its key or lane is in the inbox. The message
// is marked in its worker's next batch. The commit that ends the earlier message unblocks the stored message.
func (m *Machine) standBehind(it *Item) {
	why := it.ensureFailure()
	why.reason, why.after = reasonname.Behind, 0
	it.markAs, it.runAlone = AsBlocked, false
	m.requeue(it)
}

// keepPlaces removes messages from the batch that would be stored in the inbox too early: messages with an earlier
// message of the same ordering key in the batch that does not end in the batch. Inbox rows of one key are handled in
// the order in which they were written, so an earlier message must be written first.
func (m *Machine) keepPlaces(f *Flight) {
	var late []*line
	for i, en := range f.Entries {
		switch v := f.verdicts[i].Kind; {
		case !en.Item.line.ordered:
		case v == untouched || v == store.Behind || v == store.Old:
			late = append(late, en.Item.line)
		case v == store.Fresh && en.As != AsApplied && slices.Contains(late, en.Item.line):
			f.verdicts[i].Kind = untouched
			f.trim = append(f.trim, i)
		}
	}
}
