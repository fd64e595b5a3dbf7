//! Tables as Parquet, a row group at a time.

use super::format::Out;
use super::table::{Cell, CellKind, TableColumn, TableRows};
use parquet::basic::ZstdLevel;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::io;
use std::sync::Arc;

/// Rows per row group.
const ROW_GROUP: usize = 1 << 16;

/// Writes `rows`.
pub(super) fn write(out: Out<'_>, columns: &[TableColumn], rows: TableRows<'_>) -> io::Result<()> {
    let field = |column: &TableColumn| {
        let TableColumn { name, kind, required } = column;
        let presence = if *required { "REQUIRED" } else { "OPTIONAL" };
        match kind {
            CellKind::Text => format!("{presence} BYTE_ARRAY {name} (STRING);"),
            CellKind::Number => format!("{presence} DOUBLE {name};"),
            CellKind::Count => format!("{presence} INT64 {name};"),
            CellKind::Truth => format!("{presence} BOOLEAN {name};"),
        }
    };
    let fields: Vec<String> = columns.iter().map(field).collect();
    let schema = format!("message rows {{ {} }}", fields.join(" "));
    let packing = parquet::basic::Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(packing).build();
    let schema = Arc::new(parse_message_type(&schema).map_err(io::Error::other)?);
    let mut writer =
        SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(io::Error::other)?;
    loop {
        let group: io::Result<Vec<Vec<Cell>>> = rows.take(ROW_GROUP).collect();
        let group = group?;
        if group.is_empty() {
            break;
        }
        row_group(&mut writer, columns, &group).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}

/// A group of rows, column by column.
fn row_group(
    writer: &mut SerializedFileWriter<Out<'_>>,
    columns: &[TableColumn],
    rows: &[Vec<Cell>],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (place, described) in columns.iter().enumerate() {
        let mut column = group.next_column()?.expect("the schema has as many columns");
        write_column(&mut column, *described, rows.iter().map(|row| &row[place]))?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_column<'a>(
    column: &mut SerializedColumnWriter<'_>,
    TableColumn { kind, required, .. }: TableColumn,
    cells: impl Iterator<Item = &'a Cell> + Clone,
) -> Result<(), ParquetError> {
    // Levels say which cells are there; a required column has none.
    let levels: Vec<i16> = cells.clone().map(|cell| i16::from(*cell != Cell::Empty)).collect();
    let present = (!required).then_some(&levels[..]);
    match kind {
        CellKind::Text => {
            let there = cells.filter(|cell| required || **cell != Cell::Empty);
            let texts: Vec<ByteArray> =
                there.map(|cell| ByteArray::from(cell.to_string().as_str())).collect();
            column.typed::<ByteArrayType>().write_batch(&texts, present, None)?
        }
        CellKind::Number => {
            let number = |cell: &Cell| match *cell {
                Cell::Number(number) => Some(number),
                Cell::Count(count) => Some(count as f64),
                _ => None,
            };
            let numbers: Vec<f64> = cells.filter_map(number).collect();
            column.typed::<DoubleType>().write_batch(&numbers, present, None)?
        }
        CellKind::Count => {
            let count = |cell: &Cell| match *cell {
                Cell::Count(count) => i64::try_from(count).ok(),
                _ => None,
            };
            let counts: Vec<i64> = cells.filter_map(count).collect();
            column.typed::<Int64Type>().write_batch(&counts, present, None)?
        }
        CellKind::Truth => {
            let truth = |cell: &Cell| match *cell {
                Cell::Truth(truth) => Some(truth),
                _ => None,
            };
            let truths: Vec<bool> = cells.filter_map(truth).collect();
            column.typed::<BoolType>().write_batch(&truths, present, None)?
        }
    };
    Ok(())
}
