//go:build unix

package replay

import (
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
)

// cause is the reason why a transfer fails permanently. The fault test repairs each cause later.
type cause int

const (
	none cause = iota
	// noAccount: the transfer names an account that does not exist, which violates a foreign key.
	noAccount
	// tooMuch: the amount violates a constraint.
	tooMuch
	// unreadable: the amount has a comma, which the SQL function "cents" cannot read.
	unreadable
)

// causeOf returns the cause why a transfer fails, or none. The failures before the first repair are two
// percent of all transfers.
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

// isContradicted reports whether another record uses the transfer's identity with other content.
func isContradicted(transfer int) bool { return transfer%200 == 40 }

// isForgotten reports whether the damaged database has lost the transfer.
func isForgotten(transfer int) bool { return transfer%400 == 50 }

// The type of transfers that close an account. One closing transfer in four fails.
const closing = "transfer.closing"

func kind(transfer int) string {
	if transfer%20 == 7 {
		return closing
	}
	return "transfer.made"
}

func id(transfer int) string { return fmt.Sprintf("transfer-%06d", transfer) }

// The number of accounts, without closed accounts.
const accounts = 500

func account(transfer int) string {
	if causeOf(transfer) == noAccount {
		return fmt.Sprintf("closed-%d", transfer/80%10)
	}
	return fmt.Sprintf("account-%03d", transfer*7919%accounts)
}

func amountOf(transfer int) int64 {
	amount := int64(100 + transfer%9_000)
	if causeOf(transfer) == tooMuch {
		amount += most
	}
	return amount
}

// The maximum amount that the constraint allows.
const most = 1_000_000

// bodyOf returns a transfer as its producer wrote it.
func bodyOf(transfer int) string {
	amount := fmt.Sprint(amountOf(transfer))
	if causeOf(transfer) == unreadable {
		amount = amount[:1] + "," + amount[1:]
	}
	return fmt.Sprintf(`{"account": %q, "amount": %q}`, account(transfer), amount)
}

// editedBody returns the body of an unreadable transfer after a person has corrected it.
func editedBody(transfer int) string {
	return fmt.Sprintf(`{"account": %q, "amount": "%d"}`, account(transfer), amountOf(transfer))
}

// place is a record of the plan: its transfer and its position.
type place struct {
	transfer, at int
	// otherContent is true if the record's content differs from the content of the transfer.
	otherContent bool
}

// The CloudEvents attribute source of all transfers.
const bank = "https://bank.example"

// record returns a transfer as a CloudEvent. Copies go to random partitions, so that two members can work on copies of
// one transfer at the same time. A record with other content follows its transfer in the same partition.
func (r *run) record(p place, random *rand.Rand) *kgo.Record {
	record := proof.CloudEvent(int32(p.transfer%r.Partitions), []byte(account(p.transfer)), []byte(bodyOf(p.transfer)), id(p.transfer), bank, kind(p.transfer))
	switch {
	case p.otherContent:
		record.Value = []byte(`{"account": "account-000", "amount": "1"}`)
	case p.at%2 == 1: // the record is a copy
		record.Partition = random.Int32N(int32(r.Partitions))
	}
	return record
}
