package operate

import (
	"context"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func TestGroupsAreCountedOverManyPagesTheMostFirst(t *testing.T) {
	f := parked(3*page + 7)
	for i := range f.rows {
		f.rows[i].Reason, f.rows[i].LastError = semel.ReasonPermanent, fmt.Sprint("error ", min(i/page, 1))
	}
	groups, err := (Box{Store: "shop", Inbox: f}).Groups(context.Background(), contract.RowFilter{})
	if err != nil || len(groups) != 2 || groups[0].Count != 2*page+7 || groups[0].Error != "error 1" || groups[1].Count != page || groups[1].Consumer != "billing" {
		t.Errorf("%v, %+v", err, groups)
	}
}

func TestErrorsThatAreAllDifferentDoNotFillTheMemory(t *testing.T) {
	f := parked(mostGroups + 500)
	for i := range f.rows {
		f.rows[i].LastError = fmt.Sprint("error ", i)
	}
	groups, err := (Box{Inbox: f}).Groups(context.Background(), contract.RowFilter{})
	if err != nil || len(groups) != mostGroups+1 || groups[0].Error != furtherErrors || groups[0].Count != 500 {
		t.Errorf("%v, %d groups, the first %+v", err, len(groups), groups[0])
	}
}
