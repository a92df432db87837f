-- Lines: of a key, or a lane, of which rows wait in the inbox; how many places were given.
create table {prefix}lines (
  name bytea primary key,
  tail bigint not null
);

-- What the message of a row keeps an order with, and where it stands in it.
alter table {prefix}inbox add column line bytea;

alter table {prefix}inbox add column place bigint;

-- Rows of lines that have not ended: the first of a line is not blocked.
create index {name}inbox_line on {prefix}inbox (line, place)
where place is not null and state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED');
