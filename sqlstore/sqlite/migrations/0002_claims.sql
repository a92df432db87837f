-- Rows that wait, by the moment from which they may be claimed: for one in
-- progress that is the end of its lease.
create index {prefix}inbox_claimable on {prefix}inbox (scope, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS');
