-- What stands for the message that caused a row, and when the row was sent again last.
alter table {prefix}inbox add column cause blob;

alter table {prefix}inbox add column emitted_at integer;

-- By this the outputs of a message are found; of other rows it has none.
create index {prefix}inbox_cause on {prefix}inbox (cause) where cause is not null;
