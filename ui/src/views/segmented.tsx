// A choice of a few, all visible.

interface SegmentedProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

export function Segmented<T extends string>({ label, value, options, onChange }: SegmentedProps<T>) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map(([option, title]) => (
        <button type="button" key={option} aria-pressed={option === value} onClick={() => onChange(option)}>
          {title}
        </button>
      ))}
    </div>
  );
}
