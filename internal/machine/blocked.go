package machine

import (
	"slices"

	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// standBehind keeps a message whose line has an earlier one in the inbox: it rides in its
// worker's next flight and waits behind that, where the commit frees it that ends the
// last one before it.
func (m *Machine) standBehind(it *Item) {
	why := it.failing()
	why.reason, why.after = reasonname.Behind, 0
	it.as, it.alone = AsBlocked, false
	m.requeue(it)
}

// keepPlaces takes back what would be kept in the inbox before an earlier message of its
// line, which is not settled with this flight: places there are given in the order of
// the rows.
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
