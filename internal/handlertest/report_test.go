package handlertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/house/pages"
	"github.com/semel-go/semel/memstore"
)

const page = "../../docs/guides/testing.md"

func TestThePageShowsTheReportOfAHandlerWithAFault(t *testing.T) {
	s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		store, mails := memstore.New(), []string{}
		return Handler[*memstore.Tx]{
			Store: store,
			Handle: func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
				mails = append(mails, "receipt for "+m.ID())
				return tx.Add("balance", 1)
			},
			Messages: []*semel.Message{event("payment-1"), event("payment-2")},
			Effect:   func(context.Context) (string, error) { return fmt.Sprintf("%s %q", store.Get("balance"), mails), nil },
		}
	}}
	var all Report
	for _, c := range cases[*memstore.Tx]() {
		all = append(all, Result{c.name, c.group, s.run(t, c)})
	}
	if text := all.String(); !strings.Contains(pages.Read(t, page), "```text"+text+"```") {
		t.Errorf("%s does not show this report:\n```text%s```", page, text)
	}
}

func TestTheReportSaysThatAnotherOrderMayFailForTheSameReason(t *testing.T) {
	const hint = "the order (perhaps for the same reason)\n"
	order := Result{orderName, Redelivery, errors.New("the order")}
	if text := (Report{{rollbackName, Redelivery, nil}, order}).String(); strings.Contains(text, hint) {
		t.Errorf("only one subtest failed:%s", text)
	}
	if text := (Report{{rollbackName, Redelivery, errors.New("the rollback")}, order}).String(); !strings.Contains(text, hint) {
		t.Errorf("both subtests failed:%s", text)
	}
}

func TestThePageNamesEachSubtest(t *testing.T) {
	text := pages.Read(t, page)
	for _, c := range cases[*memstore.Tx]() {
		if !strings.Contains(text, "`"+c.name+"`") {
			t.Errorf("%s does not name the subtest %q", page, c.name)
		}
	}
}
