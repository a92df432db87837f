// Reference computes the balances from payments.jsonl without Semel. Only the first content of each id
// counts, and only once. Lines that are no payments, and payments that the database rejects, do not count.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

func main() {
	file, err := os.ReadFile("examples/payments/payments.jsonl")
	if err != nil {
		panic(err)
	}
	payment := regexp.MustCompile(`"id":"(.*?)".*"acc-(\d\d\d)","amount":([1-9]\d*)}}$`)
	balances, seen := [100]int{}, map[string]bool{}
	for line := range strings.Lines(string(file)) {
		p := payment.FindStringSubmatch(strings.TrimSpace(line))
		if p == nil || seen[p[1]] || !utf8.ValidString(line) {
			continue
		}
		account, _ := strconv.Atoi(p[2])
		amount, _ := strconv.Atoi(p[3])
		seen[p[1]] = true
		balances[account] += amount
	}
	for account, balance := range balances {
		fmt.Printf("acc-%03d|%d\n", account, balance)
	}
}
