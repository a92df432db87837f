module github.com/semel-go/semel/kafka

go 1.26.0

require github.com/twmb/franz-go v1.22.2
