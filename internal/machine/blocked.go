package machine

import (
	"slices"

	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// standBehind stores a message in the inbox because an earlier message of its line is there. The message is marked in its
// worker's next flight, and is unblocked by the commit that ends the message before it.
func (m *Machine) standBehind(it *Item) {
	why := it.failing()
	why.reason, why.after = reasonname.Behind, 0
	it.as, it.alone = AsBlocked, false
	m.requeue(it)
}

// keepPlaces trims messages that would be stored in the inbox before an earlier message of their line that does
// not end with this flight, because rows get their place in the line in the order of insertion.
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
