import { BOOL, DOUBLE, FLOAT, FLOAT16, INT32, INT64, dataTypeName } from './graph/onnx-schema.ts';

/** A tensor at rest. float16 is its bits, on every version of Node. */
export interface TensorData {
  /** TensorProto.DataType */
  readonly type: number;
  readonly dims: readonly number[];
  readonly data: Float32Array | Uint16Array | BigInt64Array | Int32Array | Uint8Array | Float64Array;
}

export function emptyData(type: number, dims: readonly number[]): TensorData {
  const size = dims.reduce((a, b) => a * b, 1);
  switch (type) {
    case FLOAT:
      return { type, dims, data: new Float32Array(size) };
    case FLOAT16:
      return { type, dims, data: new Uint16Array(size) };
    case INT64:
      return { type, dims, data: new BigInt64Array(size) };
    case INT32:
      return { type, dims, data: new Int32Array(size) };
    case BOOL:
      return { type, dims, data: new Uint8Array(size) };
    case DOUBLE:
      return { type, dims, data: new Float64Array(size) };
    default:
      throw new Error(`expected a tensor type that can be fed, got ${dataTypeName(type)}`);
  }
}

/** Whole numbers as int64 or int32, as the graph wants them. */
export function integers(type: number, dims: readonly number[], values: ArrayLike<number>): TensorData {
  const tensor = emptyData(type, dims);
  const data = tensor.data;
  if (data instanceof BigInt64Array) for (let i = 0; i < values.length; i++) data[i] = BigInt(values[i] ?? 0);
  else for (let i = 0; i < values.length; i++) data[i] = values[i] ?? 0;
  return tensor;
}
