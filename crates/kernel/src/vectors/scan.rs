//! Selection of near pairs from a block of a matrix product.

use rayon::prelude::*;

/// Products that are tested together before a hit is located: two AVX-512 or four AVX2 registers.
const GROUP: usize = 32;
/// Rows of the product per task of a thread.
const TASK_ROWS: usize = 64;

/// Return row and column of every product that is not below the sum of the bounds of its row and its column.
///
/// A product or a bound that is not a number is returned too: it proves nothing. `columns` has a bound per column, and
/// `products` a row per bound of `rows`.
///
/// # Panics
/// If there are no columns.
#[must_use]
pub fn select_products(products: &[f32], rows: &[f32], columns: &[f32], threads: usize) -> (Vec<u32>, Vec<u32>) {
    let task = |(task, products): (usize, &[f32])| {
        let first = task * TASK_ROWS;
        let (mut selected_rows, mut selected_columns) = (Vec::new(), Vec::new());
        for (row, products) in (first..).zip(products.chunks_exact(columns.len())) {
            select_in_row(products, rows[row], columns, &mut selected_columns);
            selected_rows.resize(selected_columns.len(), row as u32);
        }
        (selected_rows, selected_columns)
    };
    let size = TASK_ROWS * columns.len();
    let parts: Vec<(Vec<u32>, Vec<u32>)> = if threads <= 1 {
        products.chunks(size).enumerate().map(task).collect()
    } else {
        products.par_chunks(size).enumerate().map(task).collect()
    };
    parts.into_iter().fold((Vec::new(), Vec::new()), |(mut rows, mut columns), (more_rows, more_columns)| {
        rows.extend(more_rows);
        columns.extend(more_columns);
        (rows, columns)
    })
}

fn select_in_row(products: &[f32], row: f32, columns: &[f32], selected: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::available() {
        // SAFETY: the processor has the feature that the function is compiled for.
        unsafe { select_in_row_avx2(products, row, columns, selected) };
        return;
    }
    select_in_row_with(products, row, columns, selected);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn select_in_row_avx2(products: &[f32], row: f32, columns: &[f32], selected: &mut Vec<u32>) {
    select_in_row_with(products, row, columns, selected);
}

#[inline(always)]
fn select_in_row_with(products: &[f32], row: f32, columns: &[f32], selected: &mut Vec<u32>) {
    let mut locate = |start: usize, products: &[f32], columns: &[f32]| {
        for (column, (&product, &bound)) in (start..).zip(products.iter().zip(columns)) {
            if proves_nothing(product, row, bound) {
                selected.push(column as u32);
            }
        }
    };
    let ((groups, rest), (bounds, rest_bounds)) = (products.as_chunks::<GROUP>(), columns.as_chunks::<GROUP>());
    for (group, (products, bounds)) in groups.iter().zip(bounds).enumerate() {
        let mut any = false;
        for index in 0..GROUP {
            any |= proves_nothing(products[index], row, bounds[index]);
        }
        if any {
            locate(group * GROUP, products, bounds);
        }
    }
    locate(groups.len() * GROUP, rest, rest_bounds);
}

/// Return whether a product is not below its bound; true if one of them is not a number.
#[inline(always)]
#[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN must be selected")]
fn proves_nothing(product: f32, row: f32, column: f32) -> bool {
    !(product < row + column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn exactly_the_products_that_are_not_below_their_bound_are_selected() {
        for (rows, columns) in [(1usize, 1usize), (3, 31), (130, 70), (65, 96)] {
            let number =
                |i: usize| if mix(i as u64).is_multiple_of(97) { f32::NAN } else { (mix(i as u64) % 1000) as f32 };
            let products: Vec<f32> = (0..rows * columns).map(number).collect();
            let row_bounds: Vec<f32> = (0..rows).map(|i| 400.0 + number(i + 7)).collect();
            let column_bounds: Vec<f32> = (0..columns).map(|i| 100.0 + number(i + 1007)).collect();
            let mut expected = (Vec::new(), Vec::new());
            for (i, &product) in products.iter().enumerate() {
                let bound = row_bounds[i / columns] + column_bounds[i % columns];
                if product.is_nan() || bound.is_nan() || product >= bound {
                    expected.0.push((i / columns) as u32);
                    expected.1.push((i % columns) as u32);
                }
            }
            for threads in [1, 2] {
                assert_eq!(select_products(&products, &row_bounds, &column_bounds, threads), expected);
            }
        }
    }
}
