/** The part of the package that the benchmark and its cross-check call; it ships no types. */
declare module 'ml-logistic-regression' {
  import type { Matrix } from 'ml-matrix';

  export default class LogisticRegression {
    constructor(options: { readonly numSteps: number; readonly learningRate: number });
    /** One against all. Class 0 is the column of `weights` of the first of two classifiers. */
    train(x: Matrix, y: Matrix): void;
    readonly classifiers: readonly { readonly weights: Matrix }[];
  }
}
