//! What the tables of a schema take.

/// The bytes that the tables of the schema and their indexes use, without what deleted and replaced rows left in their files.
///
/// A vacuum keeps that for later rows of the table and seldom gives it back, and only an extension tells how much it is. So rows
/// are counted by the statistics: those that live, by their mean width, with 32 bytes for header, pointer and alignment;
/// chunks of long values (TOAST) as full ones, which have 2 kB; indexes by the part of the table's file that is in use. No part
/// counts for more than its file. Statistics are believed of what was vacuumed or analyzed since they were begun (a crash ends
/// them), and of chunks where those that live and died since fill the file; else the file counts.
pub(super) const IN_USE: &str = "
    SELECT CAST(sum(
        maps + heap * used + indexes * used + least(toast, coalesce(chunks * 2032, toast))
    ) AS bigint)
    FROM (
        SELECT
            f.maps, f.heap, f.toast, f.indexes,
            CASE WHEN seen.rows AND f.heap > 0
                THEN least(1, coalesce(pg_stat_get_live_tuples(c.oid) * (w.width + 32) / f.heap, 1))
                ELSE 1
            END AS used,
            CASE WHEN seen.chunks OR f.toast < 2032 * (
                pg_stat_get_live_tuples(c.reltoastrelid) + pg_stat_get_dead_tuples(c.reltoastrelid)
            )
                THEN pg_stat_get_live_tuples(c.reltoastrelid)
            END AS chunks
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        CROSS JOIN LATERAL (
            SELECT
                CAST(pg_relation_size(c.oid) AS numeric) AS heap, t.toast,
                pg_table_size(c.oid) - t.toast - pg_relation_size(c.oid) AS maps,
                CAST(pg_indexes_size(c.oid) AS numeric) AS indexes
            FROM (
                SELECT CAST(coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) AS numeric) AS toast
            ) t
        ) f
        CROSS JOIN LATERAL (
            SELECT CAST(sum(s.avg_width * (1 - s.null_frac)) AS numeric) AS width
            FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname
        ) w
        CROSS JOIN LATERAL (
            SELECT bool_or(r.id = c.oid) AS rows, bool_or(r.id = c.reltoastrelid) AS chunks
            FROM (VALUES (c.oid), (c.reltoastrelid)) r (id)
            WHERE coalesce(
                pg_stat_get_last_vacuum_time(r.id), pg_stat_get_last_autovacuum_time(r.id),
                pg_stat_get_last_analyze_time(r.id), pg_stat_get_last_autoanalyze_time(r.id)
            ) IS NOT NULL
        ) seen
        WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'm')
    ) tables";
