// Generate writes payments.jsonl, the input of the example. The file has 10,000 deliveries of 7,500
// payments, as a broker delivers them on a bad day: with redeliveries, reordering, conflicts, messages that
// always fail, missing identities and malformed lines. The program always writes the same bytes.
package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
)

// The contents of the file. The constant deliveries is the total number of lines. The generator adds redeliveries until
// the file has this number of lines.
const (
	deliveries = 10_000
	payments   = 7_500
	poison     = 60 // the database rejects the amount
	strangers  = 40 // the account does not exist
	conflicts  = 70 // the id of another payment with a different amount
	anonymous  = 40 // without an id
	malformed  = 30 // not JSON
	accounts   = 100
)

// delivery is a line of the file. The field at is the position of the line.
type delivery struct {
	at   float64
	line string
}

func main() {
	path := "examples/payments/payments.jsonl"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := writeFile(path); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func writeFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, d := range makeDeliveries(rand.New(rand.NewPCG(1, 2))) {
		out.WriteString(d.line)
		out.WriteByte('\n')
	}
	return out.Flush()
}

// makeDeliveries returns all deliveries, ordered by arrival.
func makeDeliveries(r *rand.Rand) []delivery {
	var ds []delivery
	add := func(first float64, line string) { ds = append(ds, delivery{first + r.ExpFloat64()*20, line}) }
	amounts := make([]int, payments)
	for i := range payments {
		amounts[i] = 1 + r.IntN(50_000)
		add(float64(i), payment(i, amounts[i]))
	}
	for range poison {
		i := payments + len(ds)
		add(r.Float64()*payments, event(fmt.Sprintf("pay-%05d", i), account(i), badAmount(r)))
	}
	for range strangers {
		i := payments + len(ds)
		add(r.Float64()*payments, event(fmt.Sprintf("pay-%05d", i), "acc-unknown", fmt.Sprint(1+r.IntN(50_000))))
	}
	for range conflicts {
		i := r.IntN(payments)
		add(float64(i), payment(i, amounts[i]+1))
	}
	known := len(ds) // earlier deliveries can be repeated
	for range anonymous {
		add(r.Float64()*payments, fmt.Sprintf(`{"specversion":"1.0","source":"/shop","type":"payment.captured","data":{"account":%q,"amount":%d}}`, account(r.IntN(accounts)), 1+r.IntN(50_000)))
	}
	for i := range malformed {
		add(r.Float64()*payments, invalidLine(r, i))
	}
	for len(ds) < deliveries {
		first := ds[r.IntN(known)]
		add(first.at+r.ExpFloat64()*200, first.line)
	}
	slices.SortStableFunc(ds, func(a, b delivery) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	return ds
}

func payment(i, amount int) string {
	return event(fmt.Sprintf("pay-%05d", i), account(i), fmt.Sprint(amount))
}

func account(i int) string { return fmt.Sprintf("acc-%03d", i*37%accounts) }

// event returns a CloudEvent in structured JSON format. The parameter amount is the JSON text of the amount.
func event(id, account, amount string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/shop","type":"payment.captured","data":{"account":%q,"amount":%s}}`, id, account, amount)
}

// badAmount returns the JSON text of an amount that the table rejects by type or check.
func badAmount(r *rand.Rand) string {
	return []string{`0`, fmt.Sprint(-1 - r.IntN(500)), `"twelve"`, `12.5`}[r.IntN(4)]
}

// invalidLine returns a line that is not valid JSON: truncated, not UTF-8, or plain text.
func invalidLine(r *rand.Rand, i int) string {
	line := payment(payments+deliveries+i, 1+r.IntN(50_000))
	switch i % 3 {
	case 0:
		return line[:20+r.IntN(40)]
	case 1:
		return line[:40] + "\xff\xfe" + line[40:]
	default:
		return fmt.Sprintf("payment %d was captured", i)
	}
}
