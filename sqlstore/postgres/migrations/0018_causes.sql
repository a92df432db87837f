-- What stands for the message that caused a row, and when the row was sent again last.
alter table {prefix}inbox add column cause bytea;

alter table {prefix}inbox add column emitted_at timestamptz;

-- By this the outputs of a message are found; of other rows it has none. Where there are rows
-- already it is built beside those that write.
do $do$
begin
  if not exists (select 1 from {prefix}inbox limit 1) then
    create index {name}inbox_cause on {prefix}inbox (cause) where cause is not null;
  end if;
end
$do$;
