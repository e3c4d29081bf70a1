import protobuf from 'protobufjs';

/**
 * The part of the official ONNX schema (onnx.proto3, https://github.com/onnx/onnx, Apache-2.0) that an editor of decoder
 * graphs has to understand: names and field numbers are theirs. Everything else in a file (functions, quantisation
 * annotations, training info, metadata, fields of later versions) is kept byte for byte as unknown fields.
 */
const SCHEMA = `
syntax = "proto3";
package onnx;
message ModelProto {
  int64 ir_version = 1; string producer_name = 2; string producer_version = 3;
  GraphProto graph = 7; repeated OperatorSetIdProto opset_import = 8; repeated FunctionProto functions = 25;
}
message OperatorSetIdProto { string domain = 1; int64 version = 2; }
message FunctionProto { string name = 1; string domain = 10; }
message GraphProto {
  repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5;
  repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12; repeated ValueInfoProto value_info = 13;
}
message StringStringEntryProto { string key = 1; string value = 2; }
message NodeProto {
  repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4;
  repeated AttributeProto attribute = 5; string domain = 7; repeated StringStringEntryProto metadata_props = 9;
}
message AttributeProto {
  string name = 1; float f = 2; int64 i = 3; bytes s = 4; TensorProto t = 5; GraphProto g = 6;
  repeated float floats = 7; repeated int64 ints = 8; repeated TensorProto tensors = 10; repeated GraphProto graphs = 11;
  int32 type = 20;
}
message ValueInfoProto { string name = 1; TypeProto type = 2; }
message TypeProto { oneof value { Tensor tensor_type = 1; } message Tensor { int32 elem_type = 1; TensorShapeProto shape = 2; } }
message TensorShapeProto {
  message Dimension { oneof value { int64 dim_value = 1; string dim_param = 2; } }
  repeated Dimension dim = 1;
}
message TensorProto {
  repeated int64 dims = 1; int32 data_type = 2; repeated float float_data = 4; repeated int32 int32_data = 5;
  repeated int64 int64_data = 7; string name = 8; bytes raw_data = 9; repeated double double_data = 10;
  repeated StringStringEntryProto external_data = 13; int32 data_location = 14;
}
`;

/** 64-bit integers arrive as objects of the package "long"; numbers are accepted when writing. */
export type Int64 = number | { toNumber(): number };

export interface OnnxTensor {
  name?: string;
  dims?: Int64[];
  data_type?: number;
  raw_data?: Uint8Array;
  float_data?: number[];
  int32_data?: number[];
  int64_data?: Int64[];
  double_data?: number[];
  external_data?: { key: string; value: string }[];
  /** 1 = the bytes are in another file. */
  data_location?: number;
}
export interface OnnxAttribute {
  name: string;
  type: number;
  f?: number;
  i?: Int64;
  s?: Uint8Array;
  t?: OnnxTensor;
  g?: OnnxGraph;
  floats?: number[];
  ints?: Int64[];
  tensors?: OnnxTensor[];
  graphs?: OnnxGraph[];
}
export interface OnnxNode {
  name?: string;
  op_type: string;
  domain?: string;
  input: string[];
  output: string[];
  attribute?: OnnxAttribute[];
  metadata_props?: { key: string; value: string }[];
}
export interface OnnxDimension {
  dim_value?: Int64;
  dim_param?: string;
}
export interface OnnxValueInfo {
  name: string;
  type?: { tensor_type?: { elem_type?: number; shape?: { dim: OnnxDimension[] } } };
}
export interface OnnxGraph {
  name?: string;
  node: OnnxNode[];
  initializer: OnnxTensor[];
  input: OnnxValueInfo[];
  output: OnnxValueInfo[];
  value_info: OnnxValueInfo[];
}
export interface OnnxModel {
  ir_version?: Int64;
  producer_name?: string;
  producer_version?: string;
  graph: OnnxGraph;
  opset_import: { domain?: string; version?: Int64 }[];
  functions: { name?: string; domain?: string }[];
}

/** TensorProto.DataType, the values that occur in decoder graphs. */
export const FLOAT = 1;
export const INT32 = 6;
export const INT64 = 7;
export const BOOL = 9;
export const FLOAT16 = 10;
export const DOUBLE = 11;
export const BFLOAT16 = 16;

/** Name and bits per element of every TensorProto.DataType; strings (8) have no fixed size. */
export const DATA_TYPES: Readonly<Record<number, { readonly name: string; readonly bits: number }>> = {
  1: { name: 'float32', bits: 32 },
  2: { name: 'uint8', bits: 8 },
  3: { name: 'int8', bits: 8 },
  4: { name: 'uint16', bits: 16 },
  5: { name: 'int16', bits: 16 },
  6: { name: 'int32', bits: 32 },
  7: { name: 'int64', bits: 64 },
  9: { name: 'bool', bits: 8 },
  10: { name: 'float16', bits: 16 },
  11: { name: 'float64', bits: 64 },
  12: { name: 'uint32', bits: 32 },
  13: { name: 'uint64', bits: 64 },
  14: { name: 'complex64', bits: 64 },
  15: { name: 'complex128', bits: 128 },
  16: { name: 'bfloat16', bits: 16 },
  17: { name: 'float8e4m3fn', bits: 8 },
  18: { name: 'float8e4m3fnuz', bits: 8 },
  19: { name: 'float8e5m2', bits: 8 },
  20: { name: 'float8e5m2fnuz', bits: 8 },
  21: { name: 'uint4', bits: 4 },
  22: { name: 'int4', bits: 4 },
  23: { name: 'float4e2m1', bits: 4 },
  24: { name: 'float8e8m0', bits: 8 },
  25: { name: 'uint2', bits: 2 },
  26: { name: 'int2', bits: 2 },
};

export const dataTypeName = (type: number | undefined): string => DATA_TYPES[type ?? 0]?.name ?? `type ${type ?? 0}`;

const ModelProto = protobuf.parse(SCHEMA, { keepCase: true }).root.lookupType('onnx.ModelProto');

/**
 * Bytes fields of the result are views into `bytes`: keep it alive, do not change it.
 * @throws Error (from protobufjs) when the bytes are no protobuf, end early, or nest more than 100 deep
 */
export function decodeModel(bytes: Uint8Array): OnnxModel {
  const reader = protobuf.Reader.create(bytes);
  reader.discardUnknown = false;
  return ModelProto.decode(reader) as unknown as OnnxModel;
}

/** Fields that were unknown when the model was read are written back; their order within a message may differ. */
export function encodeModel(model: OnnxModel): Uint8Array {
  return ModelProto.encode(model).finish();
}

export const toNumber = (value: Int64 | undefined): number =>
  value === undefined ? 0 : typeof value === 'number' ? value : value.toNumber();

export function attribute(node: OnnxNode, name: string): OnnxAttribute | undefined {
  return node.attribute?.find((a) => a.name === name);
}

/** AttributeProto.AttributeType */
export const INT_ATTRIBUTE = 2;
export const INTS_ATTRIBUTE = 7;

export const intAttribute = (name: string, i: number): OnnxAttribute => ({ name, type: INT_ATTRIBUTE, i });
