-- Know streams inserts the streams that do not exist. If another batch is inserting the same
-- stream, know streams waits for that batch, as the statements for markers do. Take streams locks
-- all given streams, and returns the state in which the last batch left them.

-- name: know streams
with settings as materialized (
  select set_config('lock_timeout', $4, true)
)
insert into {prefix}streams (scope, name, last, version, changed_at)
select a.scope, a.name, a.last, 0, clock_timestamp()
from settings cross join unnest($1::bigint[], $2::bytea[], $3::bigint[]) a (scope, name, last)
order by a.scope, a.name
on conflict (scope, name) do nothing;

-- name: take streams
with taken as materialized (
  select a.k, s.last, s.version, s.sum
  from unnest($1::bigint[], $2::bytea[]) with ordinality a (scope, name, k)
  join {prefix}streams s on s.scope = a.scope and s.name = a.name
  order by s.scope, s.name for update of s
)
select k, last, version, sum from taken
union all
select null, null, null, null where set_config('lock_timeout', $3, true) is null;

-- Begin streams records the start of streams whose first version waits or is parked. A stream that
-- has begun is neither changed nor locked.

-- name: begin streams
insert into {prefix}streams as t (scope, name, last, version, changed_at)
select a.scope, a.name, a.last, 0, clock_timestamp()
from unnest($1::bigint[], $2::bytea[], $3::bigint[]) a (scope, name, last)
where not exists (select 1 from {prefix}streams s where s.scope = a.scope and s.name = a.name and s.last <> -1)
order by a.scope, a.name
on conflict (scope, name) do update set last = excluded.last, changed_at = excluded.changed_at where t.last = -1;

-- Move streams frees the rows that wait for exactly the given versions. Each version is passed as
-- the index of its stream in the lists and a number, so that the planner expects few rows. With an
-- inequality, the planner would expect a third of all waiting rows.

-- A row that was parked because of a gap is freed together with its marker. If the marker belongs
-- to another row of the identity, the row stays parked, as a conflict (law 16). The markers are
-- locked before this decision, because another transaction may just have made the other row due.
-- Rows are locked before markers, as in claim ends.

-- name: move streams
with moved as (
  update {prefix}streams s set last = a.last, version = a.version, sum = a.sum, changed_at = clock_timestamp()
  from unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::smallint[], $5::bytea[]) a (scope, name, last, version, sum)
  where s.scope = a.scope and s.name = a.name
), waiting as materialized (
  select i.number, i.scope, i.id, i.conflict, i.state, i.version, i.sum
  from unnest($6::bigint[], $7::bigint[]) d (place, number)
  join {prefix}inbox i on i.scope = ($1::bigint[])[d.place] and i.stream = ($2::bytea[])[d.place] and i.stream_version = d.number
  where i.stream is not null and i.state in ('BLOCKED', 'PARKED') and (i.state = 'BLOCKED' or i.reason = 'gap')
  order by i.number for update of i
), {stream freed}
select count(*) from freed;

-- name: skip stream
with moved as (
  update {prefix}streams s set last = $3, version = 0, sum = null, changed_at = clock_timestamp()
  where s.scope = $1 and s.name = $2
), waiting as materialized (
  select i.number, i.scope, i.id, i.conflict, i.state, i.version, i.sum
  from {prefix}inbox i
  where i.scope = $1 and i.stream = $2 and i.stream_version - 1 <= $3::bigint
    and i.stream is not null and i.state in ('BLOCKED', 'PARKED') and (i.state = 'BLOCKED' or i.reason = 'gap')
  order by i.number for update of i
), {stream freed}
select count(*) from freed;

-- Stream freed is a part of move streams and skip stream. If two rows have the content of the
-- marker, the first row owns the marker.

-- name: stream freed
judged as materialized (
  select w.number, k.outcome = 3 and k.version = w.version and k.sum is not distinct from w.sum and (length(w.conflict) = 0 or not exists (
    select 1 from {prefix}inbox o where o.scope = w.scope and o.id = w.id and o.conflict = '' and o.state = 'PARKED'
      and o.version = w.version and o.sum is not distinct from w.sum)) as owns
  from waiting w join {prefix}markers k on k.scope = w.scope and k.id = w.id
  where w.state = 'PARKED'
  order by w.number for update of k
), freed as (
  update {prefix}inbox i set {row freed}
  from waiting w
  where i.number = w.number and (w.state = 'BLOCKED' or w.number in (select j.number from judged j where j.owns))
  returning i.scope, i.id, i.version, i.sum
), kept as (
  update {prefix}inbox i set reason = 'conflict', revision = i.revision + 1, changed_at = clock_timestamp()
  from waiting w
  where i.number = w.number and w.state = 'PARKED' and w.number not in (select j.number from judged j where j.owns)
), marked as (
  update {prefix}markers k set outcome = 2, at = clock_timestamp()
  from freed f where k.scope = f.scope and k.id = f.id and k.outcome = 3 and k.version = f.version and k.sum is not distinct from f.sum
)

-- name: row freed
state = 'RECEIVED', reason = '', revision = i.revision + 1, changed_at = clock_timestamp(),
    processed_at = null, token = null, locked_until = null, due_at = date_trunc('milliseconds', clock_timestamp());

-- name: stream
select last from {prefix}streams t join {prefix}scopes s on s.number = t.scope
where s.consumer = $1 and s.source = $2 and s.generation = $3 and t.name = $4 for update of t;

-- name: streams
with blocked as (
  select i.scope, i.stream, count(*) as waiting, min(i.stream_version) as first,
    (array_agg(i.number order by i.stream_version, i.number))[1] as number, min(i.received_at) as oldest
  from {prefix}inbox i
  where i.state in ('BLOCKED', 'PARKED') and i.stream is not null and (i.state = 'BLOCKED' or i.reason = 'gap')
    and ($2::bytea is null or i.stream = $2)
  group by i.scope, i.stream
)
select s.consumer, s.source, s.generation, t.name, t.last, coalesce(b.waiting, 0), coalesce(b.first, 0), coalesce(b.number, 0),
  (extract(epoch from nullif(nullif(b.oldest, 'infinity'), '-infinity')) * 1000)::bigint
from {prefix}streams t join {prefix}scopes s on s.number = t.scope
left join blocked b on b.scope = t.scope and b.stream = t.name
where ($1::bytea is null or s.consumer = $1) and ($2::bytea is null or t.name = $2) and (not $3::boolean or b.waiting > 0)
order by s.consumer, s.source, s.generation, t.name limit $4;
