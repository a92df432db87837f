-- name: old table
select '"' || replace(name, '"', '""') || '"' from sqlite_master
where type in ('table', 'view') and name = ?1 collate nocase;

-- name: old columns
select name, '"' || replace(name, '"', '""') || '"', lower(type), 0, "notnull" and dflt_value is null, true, '', true
from pragma_table_info(?1);

-- name: seed first
select typeof(t.{id}), {value} from {table} t
where ({where}) and t.{id} is not null
order by t.{id} limit ?1;

-- name: seed next
select typeof(t.{id}), {value} from {table} t
where ({where}) and t.{id} > {last} and ?3 is not null
order by t.{id} limit ?1;
