-- Rows enter lines one by one, because SQLite has only one writer.

-- name: busy line
select 1 from {prefix}lines where name = ?;

-- name: know line
insert into {prefix}lines (name, tail) values (?, 1)
on conflict (name) do update set tail = tail + 1;

-- name: enter line
update {prefix}inbox as i set line = ?2, place = (select l.tail from {prefix}lines l where l.name = ?2),
  state = case when i.state = 'PARKED' then i.state when w.waits then 'BLOCKED' when i.state = 'BLOCKED' then 'RECEIVED' else i.state end,
  reason = case when i.state = 'PARKED' then i.reason when w.waits then 'behind another' when i.state = 'BLOCKED' then '' else i.reason end,
  due_at = case when w.waits and i.state <> 'PARKED' then null when i.state = 'BLOCKED' then cast(unixepoch('subsec') * 1000 as integer) else i.due_at end
from (select exists (
  select 1 from {prefix}inbox o where o.line = ?2 and o.place is not null
    and o.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')) as waits) w
where i.scope = ?1 and i.id = ?3 and i.conflict = x''
returning state;

-- Advance lines and forget lines take the numbers of rows as a JSON array. The lines of the rows
-- are materialized so that SQLite finds the first row of each line by the index. The plus sign
-- prevents SQLite from reading all blocked rows.

-- name: advance lines
with left_by as materialized (
  select distinct g.line from json_each(?1) a cross join {prefix}inbox g where g.number = a.value and g.line is not null
)
update {prefix}inbox set state = 'RECEIVED', reason = '', revision = revision + 1, changed_at = cast(unixepoch('subsec') * 1000 as integer),
  processed_at = null, token = null, locked_until = null, due_at = cast(unixepoch('subsec') * 1000 as integer)
where +state = 'BLOCKED' and number in (
  select (select i.number from {prefix}inbox i
    where i.line = l.line and i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
    order by i.place limit 1)
  from left_by l);

-- name: forget lines
delete from {prefix}lines where name in (select i.line from json_each(?1) a cross join {prefix}inbox i where i.number = a.value)
  and not exists (
    select 1 from {prefix}inbox o where o.line = {prefix}lines.name and o.place is not null
      and o.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED'));

-- If changed_at is in the future, skip rows and dissolve rows set it back only for blocked rows;
-- see cut ahead.

-- name: skip rows
update {prefix}inbox as i set place = null, revision = i.revision + 1,
  changed_at = case i.state when 'BLOCKED' then cast(unixepoch('subsec') * 1000 as integer) else max(i.changed_at, cast(unixepoch('subsec') * 1000 as integer)) end,
  reason = case i.state when 'BLOCKED' then '' else i.reason end,
  due_at = case i.state when 'BLOCKED' then cast(unixepoch('subsec') * 1000 as integer) else i.due_at end,
  state = case i.state when 'BLOCKED' then 'RECEIVED' else i.state end
from json_each(?1) a
where i.number = a.value ->> 'n' and i.revision = a.value ->> 'r';

-- name: dissolve rows
update {prefix}inbox set place = null, revision = revision + 1, changed_at = case state when 'BLOCKED' then cast(unixepoch('subsec') * 1000 as integer) else max(changed_at, cast(unixepoch('subsec') * 1000 as integer)) end,
  reason = case state when 'BLOCKED' then '' else reason end,
  due_at = case state when 'BLOCKED' then cast(unixepoch('subsec') * 1000 as integer) else due_at end,
  state = case state when 'BLOCKED' then 'RECEIVED' else state end
where number in (
  select i.number from {prefix}inbox i indexed by {prefix}inbox_line
  where i.line >= ?1 and i.line < ?2 and i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
  limit ?3);

-- name: drop lines
delete from {prefix}lines where name >= ?1 and name < ?2 and not exists (
  select 1 from {prefix}inbox i where i.line = {prefix}lines.name and i.place is not null
    and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED'));

-- name: first in line
select i.number from {prefix}inbox i
where i.line = (select g.line from {prefix}inbox g where g.number = ? and g.place is not null
    and g.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED'))
  and i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
order by i.place limit 1;

-- Sweep lines uses the index to go from line to line, so the lengths of the lines do not matter.

-- name: sweep lines
with recursive lined (line) as (
  select min(i.line) from {prefix}inbox i where i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
  union all
  select (select min(i.line) from {prefix}inbox i where i.line > l.line and i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED'))
  from lined l where l.line is not null
)
update {prefix}inbox set state = 'RECEIVED', reason = '', revision = revision + 1, changed_at = cast(unixepoch('subsec') * 1000 as integer),
  processed_at = null, token = null, locked_until = null, due_at = cast(unixepoch('subsec') * 1000 as integer)
where state = 'BLOCKED' and number in (
  select (select i.number from {prefix}inbox i
    where i.line = l.line and i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
    order by i.place limit 1)
  from lined l where l.line is not null);
