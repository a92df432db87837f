-- The table lines has a row for each line (the queue of a key or lane) with waiting rows in the
-- inbox. A transaction that adds or ends a row of a line locks the row of the line. It then reads
-- the rows of the line in a separate statement, which sees the commits of the transactions that
-- held the lock before.

-- name: busy lines
select a.k from unnest($1::bytea[]) with ordinality a (name, k)
where exists (select 1 from {prefix}lines l where l.name = a.name);

-- name: know lines
insert into {prefix}lines as l (name, tail)
select a.name, a.more from unnest($1::bytea[], $2::bigint[]) a (name, more)
order by a.name
on conflict (name) do update set tail = l.tail + excluded.tail;

-- name: enter lines
with entering as (
  select i.number, i.state, l.name, l.tail - a.behind as place,
    row_number() over (partition by a.name order by a.behind desc) > 1 or exists (
      select 1 from {prefix}inbox o
      where o.line = a.name and o.place is not null
        and o.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')) as waits
  from unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[]) a (scope, id, name, behind)
  join {prefix}lines l on l.name = a.name
  join {prefix}inbox i on i.scope = a.scope and i.id = a.id and i.conflict = ''
), entered as (
  update {prefix}inbox i set line = e.name, place = e.place,
    state = case when e.state = 'PARKED' then e.state when e.waits then 'BLOCKED' when e.state = 'BLOCKED' then 'RECEIVED' else e.state end,
    reason = case when e.state = 'PARKED' then i.reason when e.waits then 'behind another' when e.state = 'BLOCKED' then '' else i.reason end,
    due_at = case when e.waits and e.state <> 'PARKED' then null when e.state = 'BLOCKED' then date_trunc('milliseconds', clock_timestamp()) else i.due_at end
  from entering e where i.number = e.number
)
select count(*) from entering where state = 'BLOCKED' and not waits;

-- Leave lines locks the lines that rows leave together with the lines that other rows enter. A
-- batch can do both, and two batches must not wait for each other.

-- name: leave lines
select 1 from {prefix}lines l
where l.name = any($2::bytea[]) or l.name in (select i.line from {prefix}inbox i where i.number = any($1::bigint[]) and i.line is not null)
order by l.name for update of l;

-- name: advance lines
with left_by as (
  select distinct i.line from {prefix}inbox i where i.number = any($1::bigint[]) and i.line is not null
), first as (
  select a.line, f.number, f.state from left_by a left join lateral (
    select i.number, i.state from {prefix}inbox i
    where i.line = a.line and i.place is not null
      and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
    order by i.place limit 1
  ) f on true
), freed as (
  update {prefix}inbox i set {row freed} from first f where i.number = f.number and f.state = 'BLOCKED' returning 1
), gone as (
  delete from {prefix}lines l using first f where f.number is null and l.name = f.line
)
select count(*) from freed;

-- If changed_at is in the future, skip rows and dissolve rows set it back only for blocked rows;
-- see cut ahead.

-- name: skip rows
update {prefix}inbox i set place = null, revision = i.revision + 1,
  changed_at = case i.state when 'BLOCKED' then clock_timestamp() else greatest(i.changed_at, clock_timestamp()) end,
  reason = case i.state when 'BLOCKED' then '' else i.reason end,
  due_at = case i.state when 'BLOCKED' then date_trunc('milliseconds', clock_timestamp()) else i.due_at end,
  state = case i.state when 'BLOCKED' then 'RECEIVED' else i.state end
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
where a.k between 0 and 1000000 and a.n > 0 and i.number = a.n and i.revision = a.r;

-- name: dissolve rows
with chosen as (
  select i.number from {prefix}inbox i
  where i.line >= $1 and i.line < $2 and i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
  order by i.line, i.place limit $3 for update
)
update {prefix}inbox i set place = null, revision = i.revision + 1, changed_at = case i.state when 'BLOCKED' then clock_timestamp() else greatest(i.changed_at, clock_timestamp()) end,
  reason = case i.state when 'BLOCKED' then '' else i.reason end,
  due_at = case i.state when 'BLOCKED' then date_trunc('milliseconds', clock_timestamp()) else i.due_at end,
  state = case i.state when 'BLOCKED' then 'RECEIVED' else i.state end
from chosen c where i.number = c.number;

-- Lock lines waits for transactions that enter a line, because such a transaction holds the lock of
-- the line and may be about to commit.

-- name: lock lines
select 1 from {prefix}lines l where l.name >= $1 and l.name < $2 order by l.name for update of l;

-- name: drop lines
delete from {prefix}lines l where l.name >= $1 and l.name < $2 and not exists (
  select 1 from {prefix}inbox i where i.line = l.name and i.place is not null
    and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED'));

-- name: first in line
select f.number from {prefix}inbox g cross join lateral (
  select i.number from {prefix}inbox i
  where i.line = g.line and i.place is not null
    and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
  order by i.place limit 1
) f
where g.number = $1 and g.place is not null
  and g.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED');

-- Sweep lines uses the index to go from line to line, so the lengths of the lines do not matter.

-- name: sweep lines
with recursive firsts as (
  (select i.line, i.number, i.state from {prefix}inbox i
   where i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
   order by i.line, i.place limit 1)
  union all
  select n.line, n.number, n.state from firsts f cross join lateral (
    select i.line, i.number, i.state from {prefix}inbox i
    where i.line > f.line and i.place is not null and i.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED')
    order by i.line, i.place limit 1
  ) n
), freed as (
  update {prefix}inbox i set {row freed} from firsts f
  where f.state = 'BLOCKED' and i.number = f.number and i.state = 'BLOCKED' returning 1
)
select count(*) from freed;
