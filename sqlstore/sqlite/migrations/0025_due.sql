-- The consumer of a row, by which claims find what is due without asking each of the
-- consumer's scopes, of which a producer makes as many as it names sources. It is empty in
-- rows that an earlier release writes, until they are claimed.
alter table {prefix}inbox add column consumer blob not null default x'';

update {prefix}inbox set consumer = coalesce((select s.consumer from {prefix}scopes s where s.number = {prefix}inbox.scope), x'00')
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

create index {prefix}inbox_due on {prefix}inbox (consumer, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

-- By this the least and the greatest low-water mark of a consumer are found.
create index {prefix}scopes_low on {prefix}scopes (consumer, low);
