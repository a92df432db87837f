package running

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestTheTableIsASumAndShowsZeros(t *testing.T) {
	s := Summary{Consumers: map[string]semel.Counts{
		"billing": {Deliveries: 12, Applied: 9, Duplicates: 2, Parked: 1, Rerun: 4},
		"audit":   {Deliveries: 12, Applied: 12},
	}}
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := `
                      audit    billing
         applied         12          9
      duplicates          0          2
       conflicts          0          0
          parked          0          1
   dead_lettered          0          0
       discarded          0          0
         skipped          0          0
        received          0          0
         waiting          0          0
          failed          0          0
       in_flight          0          0
                   --------   --------
      deliveries         12         12
         retried          0          0
           rerun          0          4
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}

func TestAFileThatWasReadBeforeIsNamedBelowTheCounts(t *testing.T) {
	s := Summary{
		Consumers:  map[string]semel.Counts{"billing": {}, "audit": {Deliveries: 1, Duplicates: 1}},
		ReadBefore: map[string]int64{"billing": 1 << 40, "audit": 7},
	}
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	if want := "billing: nothing new; its file was already read to its end (byte 1099511627776)"; last != want || len(last) > 80 {
		t.Errorf("the last line is %q, want %q", last, want)
	}
	if strings.Contains(out.String(), "audit: nothing") {
		t.Error("a consumer with a delivery is reported as having nothing new")
	}
	if document, err := json.Marshal(s); err != nil || strings.Contains(string(document), "1099511627776") {
		t.Errorf("%s: %v", document, err)
	}
}

func TestTheInboxHasATableOfItsOwn(t *testing.T) {
	s := Summary{Consumers: map[string]semel.Counts{
		"audit":   {Deliveries: 1, Applied: 1},
		"billing": {Deliveries: 9, Received: 9, Inbox: semel.InboxCounts{Claimed: 12, Applied: 8, Waiting: 3, Lost: 1, Reclaimed: 2}},
	}}
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	_, inbox, found := strings.Cut(out.String(), "rerun          0          0\n")
	want := `
                                            
         inbox.applied          0          8
      inbox.duplicates          0          0
         inbox.waiting          0          3
          inbox.parked          0          0
   inbox.dead_lettered          0          0
       inbox.discarded          0          0
        inbox.released          0          0
            inbox.lost          0          1
                         --------   --------
         inbox.claimed          0         12
       inbox.reclaimed          0          2
`
	if got := "\n" + inbox; !found || got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}

// numbers returns the numbers in a JSON document by name. The name of a nested number has the names of its
// objects as a prefix.
func numbers(document []byte, before string) (map[string]int64, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(document, &all); err != nil {
		return nil, err
	}
	found := map[string]int64{}
	for name, value := range all {
		var n int64
		if err := json.Unmarshal(value, &n); err == nil {
			found[before+name] = n
			continue
		}
		inside, err := numbers(value, before+name+".")
		if err != nil {
			return nil, err
		}
		maps.Copy(found, inside)
	}
	return found, nil
}

func TestEveryCountIsInTheTable(t *testing.T) {
	document, err := json.Marshal(semel.Counts{})
	if err != nil {
		t.Fatal(err)
	}
	counts, err := numbers(document, "")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{"deliveries": true, claimsLine().name: true, reclaimedLine().name: true}
	for _, l := range slices.Concat(endingLines(), furtherLines(), attentionLines(), fromInbox()) {
		shown[l.name] = true
	}
	for name := range counts {
		if !shown[name] {
			t.Errorf("the table does not show %s, which the JSON document has", name)
		}
	}
	if len(shown) != len(counts) {
		t.Errorf("the table shows %d counts, the document has %d", len(shown), len(counts))
	}
	if !strings.HasPrefix(string(document), `{"deliveries":0`) {
		t.Errorf("the document lacks zeros: %s", document)
	}
}
