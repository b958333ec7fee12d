# fish completion of rackwright; made by: rackwright completion fish

function __rackwright_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $before[1])
    set -e before[1]
    set -l lines ($program completion answer fish -- $before "$current" 2>/dev/null)
    or return
    printf '%s\n' $lines[2..-1]
    set -l path (string replace -r '^-[^=]*=' '' -- "$current")
    switch "$lines[1]"
        case any
            __fish_complete_path "$path"
        case yaml
            __fish_complete_suffix "$path" .yaml
            __fish_complete_suffix "$path" .yml
        case folders
            __fish_complete_directories "$path"
    end
end

complete -c rackwright -f -a '(__rackwright_complete)'
