//go:build unix

package replay

import (
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
)

// cause is why a transfer fails for good until somebody mends it.
type cause int

const (
	none cause = iota
	// noAccount names an account that is not there: a foreign key.
	noAccount
	// tooMuch is more than a constraint allows.
	tooMuch
	// unreadable has an amount with a comma, which the function cents does not read.
	unreadable
)

// causeOf has so many transfers fail that of those that come before anybody mends a cause
// there are two of a hundred of all.
func causeOf(transfer int) cause {
	switch transfer % 80 {
	case 7:
		return noAccount
	case 33:
		return tooMuch
	case 57:
		return unreadable
	}
	return none
}

// contradicted reports whether another content comes under the transfer's identity.
func contradicted(transfer int) bool { return transfer%200 == 40 }

// forgotten reports whether the damaged database has lost the transfer.
func forgotten(transfer int) bool { return transfer%400 == 50 }

// closing is the type of those that close an account, of which one in four fails.
const closing = "transfer.closing"

func kind(transfer int) string {
	if transfer%20 == 7 {
		return closing
	}
	return "transfer.made"
}

// id is a transfer's.
func id(transfer int) string { return fmt.Sprintf("transfer-%06d", transfer) }

// accounts is how many there are, but for those that are closed.
const accounts = 500

func account(transfer int) string {
	if causeOf(transfer) == noAccount {
		return fmt.Sprintf("closed-%d", transfer/80%10)
	}
	return fmt.Sprintf("account-%03d", transfer*7919%accounts)
}

// cents is a transfer's amount.
func cents(transfer int) int64 {
	amount := int64(100 + transfer%9_000)
	if causeOf(transfer) == tooMuch {
		amount += most
	}
	return amount
}

// most is what the constraint allows.
const most = 1_000_000

// body is a transfer as its producer wrote it.
func body(transfer int) string {
	amount := fmt.Sprint(cents(transfer))
	if causeOf(transfer) == unreadable {
		amount = amount[:1] + "," + amount[1:]
	}
	return fmt.Sprintf(`{"account": %q, "amount": %q}`, account(transfer), amount)
}

// edited is the body as a person corrects it, of a transfer that is unreadable.
func edited(transfer int) string {
	return fmt.Sprintf(`{"account": %q, "amount": "%d"}`, account(transfer), cents(transfer))
}

// place is a record to be published.
type place struct {
	transfer, at int
	// other says that it has another content than its transfer.
	other bool
}

// bank is what the producer sets as the messages' source.
const bank = "https://bank.example"

// record is a transfer as a CloudEvent. Copies go to any partition, so that two members can
// hold copies at once; what contradicts a transfer comes behind it.
func (r *run) record(p place, random *rand.Rand) *kgo.Record {
	record := proof.CloudEvent(int32(p.transfer%r.Partitions), []byte(account(p.transfer)), []byte(body(p.transfer)), id(p.transfer), bank, kind(p.transfer))
	switch {
	case p.other:
		record.Value = []byte(`{"account": "account-000", "amount": "1"}`)
	case p.at%2 == 1: // a copy
		record.Partition = random.Int32N(int32(r.Partitions))
	}
	return record
}
