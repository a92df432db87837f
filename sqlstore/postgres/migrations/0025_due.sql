-- The consumer of a row, by which claims find what is due without asking each of the
-- consumer's scopes, of which a producer makes as many as it names sources. It is empty in
-- rows that an earlier release wrote, until they are claimed.
alter table {prefix}inbox add column consumer bytea not null default '';

-- Where there are rows already, these two indexes are built beside those that write: the
-- first finds rows that are due, the second the least and the greatest low-water mark of a
-- consumer.
do $do$
begin
  if not exists (select 1 from {prefix}inbox limit 1) then
    create index {name}inbox_due on {prefix}inbox (consumer, due_at, number)
    where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');
  end if;
  if not exists (select 1 from {prefix}scopes limit 1) then
    create index {name}scopes_low on {prefix}scopes (consumer, low);
  end if;
end
$do$;
