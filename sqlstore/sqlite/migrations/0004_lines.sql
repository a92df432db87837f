-- Lines: of a key, or a lane, of which rows wait in the inbox; how many places were given.
create table {prefix}lines (
  name blob primary key,
  tail integer not null
) without rowid;

-- What the message of a row keeps an order with, and where it stands in it.
alter table {prefix}inbox add column line blob;

alter table {prefix}inbox add column place integer;

-- Rows of lines that have not ended: the first of a line is not blocked.
create index {prefix}inbox_line on {prefix}inbox (line, place)
where place is not null and state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED');
