/** The tree that @huggingface/jinja's parser makes (0.5.11), as far as it is used. */
export interface Name {
  readonly type: 'Identifier';
  readonly value: string;
}
export interface Call {
  readonly type: 'CallExpression';
  readonly callee: Expression;
  readonly args: readonly Argument[];
}
export interface NamedArgument {
  readonly type: 'KeywordArgumentExpression';
  readonly key: Name;
  readonly value: Expression;
}
export type Parameter = Name | NamedArgument;
export type Argument =
  | Expression
  | NamedArgument
  | { readonly type: 'SpreadExpression'; readonly argument: Expression }
  | { readonly type: 'KeywordSpreadExpression'; readonly argument: Expression };
interface Operator {
  readonly value: string;
}

export interface Member {
  readonly type: 'MemberExpression';
  readonly object: Expression;
  readonly property: Expression | Slice;
  readonly computed: boolean;
}
export interface Slice {
  readonly type: 'SliceExpression';
  readonly start?: Expression;
  readonly stop?: Expression;
  readonly step?: Expression;
}
export interface TupleNode {
  readonly type: 'TupleLiteral';
  readonly value: readonly Expression[];
}
export type Expression =
  | Name
  | Call
  | Member
  | TupleNode
  | { readonly type: 'IntegerLiteral' | 'FloatLiteral'; readonly value: number }
  | { readonly type: 'StringLiteral'; readonly value: string }
  | { readonly type: 'ArrayLiteral'; readonly value: readonly Expression[] }
  | { readonly type: 'ObjectLiteral'; readonly value: ReadonlyMap<Expression, Expression> }
  | {
      readonly type: 'BinaryExpression';
      readonly operator: Operator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly type: 'UnaryExpression'; readonly operator: Operator; readonly argument: Expression }
  | { readonly type: 'FilterExpression'; readonly operand: Expression; readonly filter: Name | Call }
  | { readonly type: 'TestExpression'; readonly operand: Expression; readonly negate: boolean; readonly test: Name }
  | { readonly type: 'SelectExpression'; readonly lhs: Expression; readonly test: Expression }
  | {
      readonly type: 'Ternary';
      readonly condition: Expression;
      readonly trueExpr: Expression;
      readonly falseExpr: Expression;
    };

export interface For {
  readonly type: 'For';
  readonly loopvar: Name | TupleNode;
  readonly iterable: Expression;
  readonly body: readonly Statement[];
  readonly defaultBlock: readonly Statement[];
}
export interface SetNode {
  readonly type: 'Set';
  readonly assignee: Expression;
  readonly value: Expression | null;
  readonly body: readonly Statement[];
}
export interface Macro {
  readonly type: 'Macro';
  readonly name: Name;
  readonly args: readonly Parameter[];
  readonly body: readonly Statement[];
}
export interface CallStatement {
  readonly type: 'CallStatement';
  readonly call: Call;
  readonly callerArgs: readonly Parameter[] | null;
  readonly body: readonly Statement[];
}
export type Statement =
  | Expression
  | For
  | SetNode
  | Macro
  | CallStatement
  | {
      readonly type: 'If';
      readonly test: Expression;
      readonly body: readonly Statement[];
      readonly alternate: readonly Statement[];
    }
  | { readonly type: 'FilterStatement'; readonly filter: Name | Call; readonly body: readonly Statement[] }
  | { readonly type: 'Break' | 'Continue' | 'Comment' };

export interface Program {
  readonly type: 'Program';
  readonly body: readonly Statement[];
}

/** Every node of a tree, in no promised order. */
export function* nodesOf(root: unknown): Generator<{ readonly type: string } & Readonly<Record<string, unknown>>> {
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (Array.isArray(node)) waiting.push(...(node as unknown[]));
    else if (node instanceof Map) for (const entry of node as Map<unknown, unknown>) waiting.push(...entry);
    else if (typeof node === 'object' && node !== null) {
      if ('type' in node && typeof node.type === 'string')
        yield node as { readonly type: string } & Readonly<Record<string, unknown>>;
      waiting.push(...Object.values(node));
    }
  }
}
